// Two ranks, threads of this process, of which one goes wrong at its k-th collective: both end, with the rank, the
// training step and the reason, within the watchdog's time, and no rank's step is half applied; a late one changes no
// bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/live_run.hpp"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::Fault;
using testing::Faults;
using ::testing::HasSubstr;
using testing::LiveResult;
using testing::LiveRun;
using testing::MemoryGroup;
using testing::Plan;
using testing::Site;

constexpr int kRanks = 2;
constexpr std::chrono::milliseconds kLimit = 300ms;
constexpr std::chrono::seconds kTooLong{20};

Scenario of_two(const std::string& policy, const std::string& partition, const std::string& folder) {
  Scenario s = testing::tiny_gpt(policy, testing::kAmple);
  s.workload.devices = kRanks;
  s.workload.partition = partition;
  s.steps = 3;
  if (partition == "none") s.checkpoint = {folder, 1, 10};  // a checkpoint holds whole states
  return s;
}

struct BothRanks {
  std::array<LiveResult, kRanks> results;
  std::map<std::int32_t, std::map<std::string, std::uint64_t>> saved;
  std::array<std::int64_t, kRanks> collectives{};
  bool struck = false;
};

// The leading rank saves; its watchdog expires first.
BothRanks run_both(const std::string& policy, const std::string& partition, Rank wrong, const Plan& plan) {
  const testing::TestFolder folder;
  MemoryGroup group(kRanks);
  std::array<std::unique_ptr<Faults>, kRanks> faults;
  BothRanks out;
  std::array<Scenario, kRanks> scenarios;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    scenarios[at] = of_two(policy, partition, folder.path() + "/saved");
    faults[at] = std::make_unique<Faults>(rank == wrong ? plan : Plan{});
  }
  const auto start = std::chrono::steady_clock::now();
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, at = static_cast<std::size_t>(rank)] {
      LiveRun run{.rank = static_cast<Rank>(at), .group = &group, .checked = false};
      run.limit = at == 0 ? kLimit : 3 * kLimit;
      run.give_up_all = [&faults] {
        for (auto& each : faults) each->give_up();
      };
      out.results[at] = run_live(scenarios[at], *faults[at], run);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTooLong);
  out.saved = testing::checkpoints_in(folder.path() + "/saved");
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    out.collectives[rank] = faults[rank]->calls(Site::Collective);
    out.struck |= faults[rank]->struck();
  }
  return out;
}

class RankFaultsTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  BothRanks run(Rank wrong, const Plan& plan) { return run_both(GetParam().first, GetParam().second, wrong, plan); }
  BothRanks clean() {
    BothRanks both = run(0, {});
    for (const LiveResult& result : both.results) EXPECT_EQ(result.error, "");
    EXPECT_EQ(both.saved.size(), GetParam().second == std::string("none") ? 3U : 0U);
    return both;
  }
  static void expect_no_half_step(const BothRanks& both, const BothRanks& clean) {
    for (const auto& [step, files] : both.saved) EXPECT_EQ(files, clean.saved.at(step)) << "training step " << step;
  }
};

TEST_P(RankFaultsTest, AnErrorAtTheKthCollectiveOfOneRankEndsBothAndIsNamed) {
  const BothRanks whole = clean();
  for (const Rank wrong : {0, 1})
    for (std::int64_t k = 0; k < whole.collectives[1]; k += 1 + k / 4) {
      const BothRanks both = run(wrong, {.fault = Fault::Fail, .site = Site::Collective, .k = k});
      ASSERT_TRUE(both.struck) << k;
      const LiveResult &own = both.results[static_cast<std::size_t>(wrong)],
                       &other = both.results[static_cast<std::size_t>(1 - wrong)];
      EXPECT_THAT(own.error, HasSubstr("planned: collective " + std::to_string(k)));
      EXPECT_THAT(own.error, HasSubstr("step")) << own.error;
      EXPECT_THAT(other.error, HasSubstr("rank " + std::to_string(1 - wrong) + " of 2: a collective failed"));
      EXPECT_THAT(other.error, HasSubstr("step"));
      expect_no_half_step(both, whole);
    }
}

TEST_P(RankFaultsTest, AHangAtTheKthCollectiveOfOneRankIsGivenUpByTheWatchdogWhichSaysWhere) {
  const BothRanks whole = clean();
  for (const Rank wrong : {0, 1})
    for (const std::int64_t k : {std::int64_t{0}, whole.collectives[1] / 2, whole.collectives[1] - 1}) {
      const BothRanks both = run(wrong, {.fault = Fault::Hang, .site = Site::Collective, .k = k});
      ASSERT_TRUE(both.struck) << k;
      EXPECT_THAT(both.results[0].waits, HasSubstr("lane collective: command")) << "rank " << wrong << " at " << k;
      EXPECT_THAT(both.results[0].waits, HasSubstr("waits for the other ranks"));
      EXPECT_THAT(both.results[0].waits, HasSubstr("step"));
      for (const LiveResult& result : both.results) EXPECT_NE(result.error, "");
      expect_no_half_step(both, whole);
    }
}

TEST_P(RankFaultsTest, ALateCollectiveChangesNoBit) {
  const BothRanks whole = clean();
  const Plan plan{.fault = Fault::Late, .site = Site::Collective, .k = 3, .delay_seed = 5, .most_delay = 2ms};
  const BothRanks both = run(1, plan);
  EXPECT_TRUE(both.struck);
  EXPECT_EQ(both.saved, whole.saved);
  for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(both.results[rank].digests, whole.results[rank].digests);
}

INSTANTIATE_TEST_SUITE_P(Policies, RankFaultsTest,
                         ::testing::Values(std::pair{"zero_offload", "none"}, std::pair{"zero_infinity", "parameters"},
                                           std::pair{"balanced", "states"}),
                         [](const auto& test) { return std::string(test.param.first) + "_" + test.param.second; });

}  // namespace
}  // namespace tandem
