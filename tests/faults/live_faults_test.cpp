// The live scheduler and executor under seeded faults on every interface (R18): each run comes to the same bits as
// without them, or ends with an error that says so, and never hangs, leaves a thread, or a checkpoint that is not
// whole. And delays of up to 50 ms in every worker (R19). TANDEM_FAULT_SEEDS is how many runs there are,
// TANDEM_FAULT_SEED the first one's seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tests/common/fuzz.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/faults/random_live.hpp"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::Fault;
using testing::Faults;
using testing::LiveResult;
using testing::LiveRun;
using testing::Plan;
using testing::Site;

constexpr int kSeeds = testing::kSanitized ? 30 : 60;
constexpr std::chrono::milliseconds kLimit = 300ms;
// That a run may take on a busy machine: it takes some hundredths of a second, and the watchdog's limit.
constexpr std::chrono::seconds kTooLong{30};

struct Counts {
  int same = 0, failed = 0, refused = 0, stopped = 0, given_up = 0;
};

using Checkpoints = std::map<std::int32_t, std::map<std::string, std::uint64_t>>;

// Each is one of the run without faults: no step is half applied.
void expect_among(const Checkpoints& left, const Checkpoints& clean) {
  for (const auto& [step, files] : left) {
    ASSERT_TRUE(clean.contains(step)) << step;
    EXPECT_EQ(files, clean.at(step)) << "the checkpoint after training step " << step;
  }
}

struct Cleaned {
  LiveResult result;
  Checkpoints checkpoints;
  std::array<std::int64_t, testing::kSiteCount> calls{};
};

Scenario saving(Scenario scenario, const std::string& folder) {
  scenario.checkpoint = {folder, 1, 10};
  return scenario;
}

Cleaned without_faults(const Scenario& scenario, const LiveRun& run) {
  const testing::TestFolder folder;
  Faults none;
  Cleaned out;
  out.result = run_live(saving(scenario, folder.path() + "/saved"), none, run);
  out.checkpoints = testing::checkpoints_in(folder.path() + "/saved");
  for (std::size_t site = 0; site < out.calls.size(); ++site) out.calls[site] = none.calls(static_cast<Site>(site));
  return out;
}

void judge(const Plan& plan, const Faults& faults, const LiveResult& result, const Checkpoints& left,
           const Cleaned& clean, Counts& counts) {
  expect_among(left, clean.checkpoints);
  const bool fails = faults.struck() &&
                     (plan.fault == Fault::Fail || plan.fault == Fault::FailWithoutText || plan.fault == Fault::Hang);
  EXPECT_EQ(result.refused, clean.result.refused && !fails) << result.error << " / " << clean.result.error;
  if (result.refused) {
    ++counts.refused;
  } else if (!result.error.empty()) {
    EXPECT_TRUE(fails || clean.result.refused) << result.error;
    ++(result.waits.empty() ? counts.failed : counts.given_up);
  } else if (result.stopped) {
    EXPECT_TRUE(faults.struck());
    ++counts.stopped;
  } else {
    EXPECT_FALSE(fails);
    EXPECT_EQ(result.digests, clean.result.digests);
    EXPECT_EQ(left, clean.checkpoints);
    ++counts.same;
  }
  const bool hangs = faults.struck() && plan.fault == Fault::Hang;
  EXPECT_EQ(hangs, !result.waits.empty()) << result.waits;
}

void run_seed(std::uint64_t seed, Counts& counts) {
  testing::RandomLive live = testing::random_live(seed);
  const Cleaned clean = without_faults(live.scenario, live.run);
  // Now and then beyond the last call. How often a device is asked what it has done is another matter each time.
  constexpr std::int64_t kQuestions = 400;
  const std::int64_t calls = clean.calls[static_cast<std::size_t>(live.plan.site)];
  live.plan.k %= live.plan.site == Site::Reached ? kQuestions : calls * 9 / 8 + 1;
  std::ostringstream what;
  what << "TANDEM_FAULT_SEEDS=1 TANDEM_FAULT_SEED=" << seed << ": " << live.scenario.policy.name
       << (live.run.streams ? " with streams: " : ": ") << live.plan;
  SCOPED_TRACE(what.str());
  const int threads = testing::threads_now();
  const testing::TestFolder folder;
  Faults faults(live.plan);
  live.run.limit = kLimit;
  const auto start = std::chrono::steady_clock::now();
  const LiveResult result = run_live(saving(live.scenario, folder.path() + "/saved"), faults, live.run);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTooLong);
  EXPECT_TRUE(testing::comes_to_threads(threads)) << "a thread is left";
  judge(live.plan, faults, result, testing::checkpoints_in(folder.path() + "/saved"), clean, counts);
}

// In parts, so that a nightly run uses all cores: each is a process.
class LiveFaultsTest : public ::testing::TestWithParam<int> {};
constexpr int kParts = 2;

TEST_P(LiveFaultsTest, SeededFaultsLeaveTheSameBitsOrAClearErrorAndWholeCheckpoints) {
  const int first = test::number_from("TANDEM_FAULT_SEED", 1), seeds = test::number_from("TANDEM_FAULT_SEEDS", kSeeds);
  Counts counts;
  for (int seed = first + GetParam(); seed < first + seeds && !HasFailure(); seed += kParts)
    run_seed(static_cast<std::uint64_t>(seed), counts);
  std::cout << counts.same << " with the same bits, " << counts.failed << " failed, " << counts.given_up
            << " given up by the watchdog, " << counts.stopped << " stopped, " << counts.refused << " refused\n";
  if (seeds < kSeeds) return;
  EXPECT_GT(counts.same, 0);
  EXPECT_GT(counts.failed, 0);
  EXPECT_LT(counts.refused, seeds / kParts / 2);
}

INSTANTIATE_TEST_SUITE_P(Parts, LiveFaultsTest, ::testing::Range(0, kParts));

// Every call of every site of one run, in strides that grow: the run fails there, and says so.
class EverySiteTest : public ::testing::TestWithParam<Site> {};

TEST_P(EverySiteTest, AFailureAtItsKthCallEndsTheRunWithItsReasonAndWholeCheckpoints) {
  Scenario scenario = testing::tiny_gpt("zero_infinity", testing::kTight);
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 << 10;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 1 << 20;
  scenario.steps = 3;
  LiveRun run;
  run.streams = true;
  run.checked = false;
  const Cleaned clean = without_faults(scenario, run);
  ASSERT_EQ(clean.result.error, "");
  std::int64_t struck = 0;
  constexpr std::int64_t kGrowth = 4;
  for (std::int64_t k = 0;; k += 1 + k / kGrowth) {
    const testing::TestFolder folder;
    const Plan plan{.fault = Fault::Fail, .site = GetParam(), .k = k};
    Faults faults(plan);
    const LiveResult result = run_live(saving(scenario, folder.path() + "/saved"), faults, run);
    expect_among(testing::checkpoints_in(folder.path() + "/saved"), clean.checkpoints);
    if (!faults.struck()) break;
    ++struck;
    // A drive says what calls come to, and a device only that it is lost.
    const char* said = GetParam() == Site::Disk ? "disk tier: " : "planned: ";
    if (result.error.find("fell off the bus") == std::string::npos)
      EXPECT_THAT(result.error, ::testing::HasSubstr(said)) << plan;
    else
      EXPECT_EQ(GetParam(), Site::Body) << plan;
  }
  EXPECT_GE(struck, 1);
}

INSTANTIATE_TEST_SUITE_P(Sites, EverySiteTest,
                         ::testing::Values(Site::DeviceMemory, Site::PinnedMemory, Site::Streams, Site::Copy,
                                           Site::Launch, Site::Mark, Site::Reached, Site::Disk, Site::Command,
                                           Site::Body),
                         [](const auto& test) {
                           std::string name = testing::name_of(test.param);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

class DelaysTest : public ::testing::TestWithParam<const char*> {};

TEST_P(DelaysTest, UpTo50MillisecondsInEveryWorkerChangeNoBit) {
  Scenario scenario = testing::tiny_gpt(GetParam(), testing::device_bytes(GetParam()));
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 1 << 20;
  if (scenario.policy.name != "balanced")
    scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 << 10;
  scenario.steps = 2;
  const Cleaned clean = without_faults(scenario, {});
  ASSERT_EQ(clean.result.error, "");
  for (const bool streams : {false, true}) {
    const testing::TestFolder folder;
    Faults faults({.delay_seed = 7, .most_delay = 50ms, .late_in = 24});
    const LiveResult result = run_live(saving(scenario, folder.path() + "/saved"), faults, {.streams = streams});
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.digests, clean.result.digests);
    EXPECT_EQ(testing::checkpoints_in(folder.path() + "/saved"), clean.checkpoints);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, DelaysTest, ::testing::Values("on_demand", "balanced", "zero_infinity"));

}  // namespace
}  // namespace tandem
