// Two processes, of which one goes wrong at its k-th collective: both end within the watchdog's time, the run's error
// names the rank, the training step and the collective, and the checkpoints that are left are those of whole steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/faults/faulty_collective.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::Fault;
using testing::Faults;
using ::testing::HasSubstr;
using testing::Plan;
using testing::Site;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario of_two(const std::string& directory) {
  Scenario s = testing::gpt_scenario("zero_offload", 4 * kMiB, 2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 64 * kMiB;
  s.workload.keys["hidden"] = 16;
  s.workload.keys["heads"] = 2;
  s.workload.keys["sequence"] = 8;
  s.workload.devices = 2;
  s.checkpoint = {directory, 1, 10};
  return s;
}

// What the rank's run ends with.
std::string run(Rank rank, Faults& faults, const std::string& directory, const std::string& meeting_file,
                Watchdog* watchdog) {  // looks once all have begun, which takes a busy machine its time
  set_thread_count(1);
  const Scenario scenario = of_two(directory);
  TrainOptions options;
  options.rank = rank;
  options.meeting_file = meeting_file;
  options.decorate = [&faults](LiveExecutorOptions& executor) {
    executor.collective = std::make_shared<testing::FaultyCollective>(executor.collective, faults);
  };
  try {
    Training training(scenario, options);
    const auto look_away = [](Watchdog* w) { w->watch(nullptr); };  // before the training is gone, however it ends
    std::unique_ptr<Watchdog, decltype(look_away)> watched;
    if (watchdog != nullptr) {
      watchdog->watch([&training] { return training.executor().standstill(); });
      watched.reset(watchdog);
    }
    training.run();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

class GlooFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem-ranks-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  struct Ending {
    std::string error, waits;
    bool other_failed = false;
    std::int64_t collectives = 0;
  };
  // The leading rank here, the other one a process.
  Ending run_both(Rank wrong, const Plan& plan) {
    fs::remove_all(directory_ + "/saved");
    std::optional<RankProcesses> peers;
    peers.emplace(2, std::vector<std::string>{"--gtest_filter=*DISABLED_TheOtherRankOfFaults*",
                                              "--gtest_also_run_disabled_tests", "--wrong=" + std::to_string(wrong),
                                              "--fault=" + std::to_string(static_cast<int>(plan.fault)),
                                              "--k=" + std::to_string(plan.k), "--saved=" + directory_ + "/saved"});
    Faults faults(wrong == 0 ? plan : Plan{});
    Ending ending;
    WatchdogOptions watch;
    watch.limit = 1500ms;
    watch.expired = [&](const std::string& waits, bool) {  // the process's end, which ends its peers
      ending.waits = waits;
      faults.give_up();
      peers.reset();
    };
    std::optional<Watchdog> watchdog(watch);
    ending.error = run(0, faults, directory_ + "/saved", peers->meeting_file(), &*watchdog);
    watchdog.reset();  // what it has begun to end has ended
    ending.collectives = faults.calls(Site::Collective);
    try {
      if (peers) peers->finish();
      ending.other_failed = !peers;
    } catch (const DeviceError&) {
      ending.other_failed = true;
    }
    return ending;
  }
  std::map<std::int32_t, std::map<std::string, std::string>> saved() const {
    std::map<std::int32_t, std::map<std::string, std::string>> out;
    for (const SavedState& checkpoint : complete_checkpoints(directory_ + "/saved")) {
      const Manifest manifest = read_manifest(checkpoint.folder);
      EXPECT_NO_THROW(verify_files(checkpoint.folder, manifest));
      for (const Manifest::File& file : manifest.files) out[checkpoint.step][file.name] = file.checksum;
    }
    return out;
  }
  std::string directory_;
};

TEST_F(GlooFaultsTest, AnErrorOrAHangOfOneProcessEndsBothAndIsNamed) {
  const Ending whole = run_both(0, {});
  ASSERT_EQ(whole.error, "");
  ASSERT_FALSE(whole.other_failed);
  const auto clean = saved();
  ASSERT_EQ(clean.size(), 3U);
  for (const Fault fault : {Fault::Fail, Fault::Hang})
    for (const Rank wrong : {0, 1}) {
      const std::int64_t k = wrong == 0 ? whole.collectives / 2 : whole.collectives - 2;
      SCOPED_TRACE("rank " + std::to_string(wrong) + (fault == Fault::Hang ? " hangs" : " fails") + " at collective " +
                   std::to_string(k) + " of " + std::to_string(whole.collectives));
      const Ending ending = run_both(wrong, {.fault = fault, .site = Site::Collective, .k = k});
      EXPECT_TRUE(ending.other_failed);
      EXPECT_THAT(ending.error, HasSubstr("step"));
      EXPECT_THAT(ending.error, HasSubstr("collective: "));
      const char* said = wrong == 1 ? "rank 0 of 2: a collective failed, so a peer has stopped" : "planned: ";
      EXPECT_THAT(ending.error, HasSubstr(said));
      EXPECT_EQ(fault == Fault::Hang, !ending.waits.empty()) << ending.waits;
      EXPECT_THAT(ending.waits, HasSubstr(fault == Fault::Hang ? "waits for the other ranks" : ""));
      for (const auto& [step, files] : saved()) EXPECT_EQ(files, clean.at(step)) << step;
    }
}

// The other process of the test above.
TEST_F(GlooFaultsTest, DISABLED_TheOtherRankOfFaults) {
  Plan plan{.fault = static_cast<Fault>(std::stoi(argument("fault"))), .site = Site::Collective};
  plan.k = std::stoi(argument("k"));
  Faults faults(argument("wrong") == "1" ? plan : Plan{});
  const std::string error = run(1, faults, argument("saved"), argument("meeting-file"), nullptr);
  // A check that failed would be counted among the failed tests of the one that runs this process.
  std::exit(error.empty() ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace
}  // namespace tandem
