#include "tests/faults/live_run.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "core/run/make_scheduler.hpp"
#include "core/scheduler/contents.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/happens_before.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/failure_text.hpp"
#include "runtime/executors/watchdog.hpp"
#include "tests/executors/thread_device.hpp"
#include "tests/faults/faulty_device.hpp"

namespace tandem {

std::span<const BodyEntry> checkpoint_bodies();

namespace testing {
namespace {

namespace fs = std::filesystem;

class NoBatches final : public DataSource {
 public:
  void next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const override {}
  void masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                          std::int64_t*) const override {}
  void image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const override {}
};

// Bodies are plain functions: faults are those of the rank whose worker calls, of which a process may run several.
std::array<std::atomic<Faults*>, 8> faults_of_rank{};

// A body that fails has written all of its result by then: nothing may go by that.
std::int64_t faulty_body(BodyCall& call) {
  const std::int64_t result = digest_body(call);
  faults_of_rank.at(static_cast<std::size_t>(call.rank)).load()->pass(Site::Body);
  return result;
}

const BodyEntry& find_faulty_body(const Work& work) {
  static constexpr BodyEntry kFaulty{"faulty", &faulty_body};
  for (const BodyEntry& entry : checkpoint_bodies())
    if (entry.name == work.body) return entry;
  return kFaulty;
}

LiveExecutorOptions options_for(const Scheduler& scheduler, Faults& faults, const LiveRun& run) {
  LiveExecutorOptions options;
  options.rank = run.rank;
  for (int tier = 0; tier < kTierCount; ++tier)
    options.arena_bytes[static_cast<std::size_t>(tier)] = scheduler.pool(static_cast<Tier>(tier)).capacity_bytes();
  options.scratch_directory = ::testing::TempDir();
  options.library.find_body = &find_faulty_body;
  options.before_command = [&faults](const Command&) { faults.pass(Site::Command); };
  options.disk_fault = [&faults](std::int64_t, std::int32_t result) { return faults.disk(result); };
  options.interrupt = &faults.interrupt();
  if (run.group != nullptr)
    options.collective =
        std::make_shared<FaultyCollective>(std::make_shared<MemoryCollective>(*run.group, run.rank), faults);
  if (run.streams) options.device = std::make_shared<FaultyDevice>(std::make_shared<ThreadDevice>(), faults);
  return options;
}

void drive_all(const Scenario& scenario, Faults& faults, const LiveRun& run, Watchdog* watchdog, LiveResult& result) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate, run.rank);
  const NoBatches data;
  LiveExecutor executor(scheduler->graph(), scenario, data, options_for(*scheduler, faults, run));
  if (watchdog != nullptr) watchdog->watch([&executor] { return executor.standstill(); });
  struct Unwatch {
    Watchdog* watchdog;
    ~Unwatch() {
      if (watchdog != nullptr) watchdog->watch(nullptr);
    }
  } const unwatch{watchdog};
  Scheduler* ranks[] = {scheduler.get()};
  if (run.checked) {
    Contents contents(scheduler->graph(), run.rank);
    HappensBefore checker(scheduler->graph(), run.rank, &contents);
    drive(ranks, executor, checker);
    result.error = checker.violation() + contents.violation();
  } else {
    scheduler->forget_what_is_over();
    MemoryLog log;
    drive(ranks, executor, log);
  }
  faults.rest();
  if (!scheduler->failure().empty()) result.error = scheduler->failure();
  result.stopped = scheduler->stopped() || scheduler->interrupted();
  if (!result.error.empty() || result.stopped) return;
  for (TensorId id = 0; id < scheduler->graph().tensor_count(); ++id)
    if (const Tensor& tensor = scheduler->graph().tensor(id);
        tensor.persistent && scheduler->find(tensor.latest).second > 0)  // ranks' parts are brought together anew
      result.digests[tensor.name] = digest_of(*scheduler, executor, tensor);
}

std::uint64_t digest_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t digest = 0;
  for (std::istreambuf_iterator<char> at(in), end; at != end; ++at)
    digest = mix(digest ^ static_cast<std::uint8_t>(*at));
  return digest;
}

}  // namespace

// In memory where the machine has such a folder: a run of a hundredth of a second syncs thirty files.
TestFolder::TestFolder()
    : path_((fs::is_directory("/dev/shm") ? "/dev/shm" : ::testing::TempDir()) + "/tandem-faults-XXXXXX") {
  EXPECT_NE(::mkdtemp(path_.data()), nullptr);
}

LiveResult run_live(const Scenario& scenario, Faults& faults, const LiveRun& run) {
  faults_of_rank.at(static_cast<std::size_t>(run.rank)) = &faults;
  LiveResult result;
  std::optional<Watchdog> watchdog;
  if (run.limit.count() > 0) {
    WatchdogOptions options;
    options.limit = run.limit;
    options.expired = [&](const std::string& waits, bool) {
      result.waits = waits;
      faults.give_up();
      if (run.give_up_all) run.give_up_all();
      if (run.group != nullptr) run.group->leave();
    };
    watchdog.emplace(options);
  }
  std::optional<ArmedAllocations> armed;
  try {
    if (run.failing != nullptr) armed.emplace(*run.failing);
    drive_all(scenario, faults, run, watchdog ? &*watchdog : nullptr, result);
  } catch (const DoesNotFit& error) {
    result.refused = true;
    result.error = error.what();
  } catch (...) {
    result.error = failure_text();
    result.digests.clear();
  }
  armed.reset();
  watchdog.reset();  // what it has begun to say is said
  return result;
}

std::map<std::int32_t, std::map<std::string, std::uint64_t>> checkpoints_in(const std::string& directory) {
  std::map<std::int32_t, std::map<std::string, std::uint64_t>> out;
  if (!fs::exists(directory)) return out;
  for (const SavedState& checkpoint : complete_checkpoints(directory)) {
    const Manifest manifest = read_manifest(checkpoint.folder);
    EXPECT_NO_THROW(verify_files(checkpoint.folder, manifest)) << checkpoint.folder;
    for (const Manifest::File& file : manifest.files)
      out[checkpoint.step][file.name] = digest_of_file(fs::path(checkpoint.folder) / file.name);
  }
  return out;
}

int threads_now() {
  const fs::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(fs::begin(tasks), fs::end(tasks)));
}

bool comes_to_threads(int count) {
  constexpr int kTries = 500;
  for (int i = 0; i < kTries && threads_now() > count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return threads_now() <= count;
}

}  // namespace testing
}  // namespace tandem
