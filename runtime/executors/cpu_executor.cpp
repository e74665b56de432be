#include "runtime/executors/cpu_executor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/scheduler/check.hpp"

namespace tandem {

CpuExecutor::CpuExecutor(const Graph& graph, const Scenario& scenario, const DataSource& data,
                         CpuExecutorOptions options)
    : graph_(graph), scenario_(scenario), data_(data), options_(std::move(options)) {
  CHECK(options_.library.find_body != nullptr, "an executor needs bodies");
  for (Tier tier : {Tier::Device, Tier::HostPinned, Tier::HostPageable}) {
    const auto i = static_cast<std::size_t>(tier);
    arenas_[i] =
        Arena(std::string(name_of(tier)), options_.arena_bytes[i], options_.lock_host && tier == Tier::HostPinned);
  }
  const std::int64_t disk_bytes = options_.arena_bytes[static_cast<std::size_t>(Tier::Disk)];
  if (disk_bytes > 0) {
    DiskOptions disk;
    disk.directory = options_.scratch_directory;
    disk.bytes = disk_bytes;
    disk_ = std::make_unique<DiskFile>(std::move(disk));
  }
  workers_ = std::make_unique<LaneWorkers>(
      options_.rank, [this](Engine engine) { prepare_thread(engine); }, options_.interrupt);
}

CpuExecutor::~CpuExecutor() = default;

void CpuExecutor::prepare_thread(Engine engine) const {
  if (options_.library.set_thread_count == nullptr) return;
  options_.library.set_thread_count(operand_tier(engine) == Tier::Device ? options_.device_threads
                                                                         : options_.cpu_threads);
}

void CpuExecutor::submit(std::span<const Command> commands) {
  std::vector<Task> tasks;
  for (const Command& command : commands) {
    if (command.kind == CommandKind::Release) {
      if (!options_.poison) continue;
      workers_->add(std::exchange(tasks, {}));  // the note may wait for them
      note_release(command);
    } else {
      Work work = work_of(command);
      if (options_.before_command)
        work = [this, command, work = std::move(work)] {
          options_.before_command(command);
          return work();
        };
      tasks.push_back({command.id, command.lane.engine, command.wait_for, std::move(work)});
    }
  }
  workers_->add(std::move(tasks));
}

void CpuExecutor::read(Place place, std::byte* target, std::int64_t bytes) {
  CHECK(!in_flight(), "an arena is read while commands run");
  if (place.tier == Tier::Disk)
    channel(Engine::DiskRead).read(place.offset, target, bytes);
  else
    std::memcpy(target, arena(place.tier).at(place.offset, bytes), static_cast<std::size_t>(bytes));
}

std::vector<WorkspacePeak> CpuExecutor::workspace_peaks() const {
  const std::lock_guard lock(peaks_mutex_);
  return peaks_;
}

DiskChannel& CpuExecutor::channel(Engine engine) {
  CHECK(disk_ != nullptr, "a command for a disk tier that the run does not have");
  auto& slot = channels_[static_cast<std::size_t>(engine)];
  if (!slot) slot = std::make_unique<DiskChannel>(*disk_);
  return *slot;
}

}  // namespace tandem
