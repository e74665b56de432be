#include "runtime/executors/live_executor.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"
#include "core/machine/lanes.hpp"

namespace tandem {
namespace {

// Far more than commands that the device can have at a time, so that a slot is read before it is used again.
constexpr std::int64_t kResultSlots = 1 << 12;

}  // namespace

LiveExecutor::LiveExecutor(const Graph& graph, const Scenario& scenario, const DataSource& data,
                           LiveExecutorOptions options)
    : graph_(graph), scenario_(scenario), data_(data), options_(std::move(options)), teams_(scenario.machine) {
  CHECK(options_.library.find_body != nullptr, "an executor needs bodies");
  make_arenas();
  const std::int64_t disk_bytes = options_.arena_bytes[static_cast<std::size_t>(Tier::Disk)];
  if (disk_bytes > 0) note_ = DiskFile::try_folder(options_.scratch_directory);
  workers_ = std::make_unique<LaneWorkers>(
      options_.rank, [this](LaneIndex lane) { prepare_thread(lane); }, options_.interrupt, options_.cpu_threads);
  if (options_.device)
    stream_lanes_ = std::make_unique<StreamLanes>(options_.rank, options_.device->open_streams(), *workers_);
}

void LiveExecutor::make_arenas() {
  Device* device = options_.device.get();
  const auto bytes = [this](Tier tier) { return options_.arena_bytes[static_cast<std::size_t>(tier)]; };
  const auto mapped = [&](Tier tier, bool lock) { return Arena(std::string(name_of(tier)), bytes(tier), lock); };
  const auto arena_of = [this](Tier tier) -> Arena& { return arenas_[static_cast<std::size_t>(tier)]; };
  arena_of(Tier::HostPageable) = mapped(Tier::HostPageable, false);
  if (device == nullptr) {
    arena_of(Tier::Device) = mapped(Tier::Device, false);
    arena_of(Tier::HostPinned) = mapped(Tier::HostPinned, options_.lock_host);
    return;
  }
  arena_of(Tier::Device) = device->device_arena(bytes(Tier::Device));
  const auto start = std::chrono::steady_clock::now();
  arena_of(Tier::HostPinned) =
      device->pinned_arena(std::string(name_of(Tier::HostPinned)), bytes(Tier::HostPinned), options_.pageable_bytes);
  pinning_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(std::int64_t));
  result_slots_ = device->pinned_arena("results", kResultSlots * kNumber);
  if (options_.chosen)
    choice_slots_ = device->pinned_arena("choices", kChoiceSlots * scenario_.workload.batch * kNumber);
}

std::int64_t* LiveExecutor::result_slot(CommandId id) const {
  const auto bytes = static_cast<std::int64_t>(sizeof(std::int64_t));
  return reinterpret_cast<std::int64_t*>(result_slots_.at(id % kResultSlots * bytes, bytes));
}

// A team that cannot be kept to its cores runs all the same.
void LiveExecutor::prepare_thread(LaneIndex lane) const {
  teams_.pin(lane);
  if (options_.library.set_thread_count == nullptr) return;
  const bool claims = claims_cores(lane.kind());
  const int team =
      claims ? std::min(claimed_cores(scenario_.machine, lane.kind()), options_.cpu_threads) : options_.cpu_threads;
  options_.library.set_thread_count(operand_tier(lane.kind()) == Tier::Device ? options_.device_threads : team);
}

void LiveExecutor::submit(std::span<const Command> commands) {
  std::vector<Task> tasks;
  std::vector<StreamTask> stream_tasks;
  for (const Command& command : commands) {
    if (command.kind == CommandKind::Release) {
      if (!options_.poison) continue;
      workers_->add(std::exchange(tasks, {}));  // the note may wait for them
      note_release(command);
    } else if (on_device(command.lane.kind())) {
      tasks.push_back(described(command, {}));
      tasks.back().elsewhere = true;
      stream_tasks.push_back(stream_task(command));
    } else {
      Work work = work_of(command);
      if (options_.before_commit && commits(command))
        work = [this, step = graph_.op(command.op).step, work = std::move(work)] {
          options_.before_commit(step);
          return work();
        };
      if (options_.before_command)
        work = [this, command, work = std::move(work)] {
          options_.before_command(command);
          return work();
        };
      tasks.push_back(described(command, std::move(work)));
    }
  }
  workers_->add(std::move(tasks));
  if (stream_lanes_) stream_lanes_->add(std::move(stream_tasks));
}

void LiveExecutor::read(Place place, std::byte* target, std::int64_t bytes) {
  CHECK(!in_flight(), "an arena is read while commands run");
  if (place.tier == Tier::Disk)
    channel(Engine::DiskRead).read(place.offset, target, bytes);
  else if (place.tier == Tier::Device && options_.device)
    options_.device->copy_now(target, arena(place.tier).at(place.offset, bytes), bytes);
  else
    std::memcpy(target, arena(place.tier).at(place.offset, bytes), static_cast<std::size_t>(bytes));
}

std::vector<WorkspacePeak> LiveExecutor::workspace_peaks() const {
  const std::lock_guard lock(peaks_mutex_);
  return peaks_;
}

std::optional<FirstNotFinite> LiveExecutor::not_finite() const {
  const std::lock_guard lock(not_finite_mutex_);
  return not_finite_;
}

DiskChannel& LiveExecutor::channel(Engine engine) {
  const std::int64_t bytes = options_.arena_bytes[static_cast<std::size_t>(Tier::Disk)];
  CHECK(bytes > 0, "a command for a disk tier that the run does not have");
  if (!disk_) {  // many runs that have a disk put nothing there
    DiskOptions disk;
    disk.directory = options_.scratch_directory;
    disk.bytes = bytes;
    disk.fault = options_.disk_fault;
    disk_ = std::make_unique<DiskFile>(std::move(disk));
  }
  auto& slot = channels_[static_cast<std::size_t>(engine)];
  if (!slot) slot = std::make_unique<DiskChannel>(*disk_);
  return *slot;
}

}  // namespace tandem
