// The k-th operator new of three training steps fails, or all from the k-th on, in the thread that schedules or in any
// (R15): the run comes to its end, or ends with an error that speaks of memory, with whole checkpoints of whole steps
// alone; no thread dies of it and nothing hangs. TANDEM_EVERY_ALLOCATION=1: for every k; else some of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tests/common/fuzz.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/faults/allocations.hpp"
#include "tests/faults/live_run.hpp"

namespace tandem {
namespace {

using testing::ArmedAllocations;
using testing::FailingAllocations;
using testing::Faults;
using testing::LiveResult;
using testing::LiveRun;

constexpr std::int64_t kSome = 60;  // runs where not every call is to fail
constexpr std::chrono::seconds kLimit{20};

using Checkpoints = std::map<std::int32_t, std::map<std::string, std::uint64_t>>;

struct Case {
  const char* name;
  bool streams, this_thread, all_after;
};

class AllocationTest : public ::testing::TestWithParam<Case> {
 protected:
  static Scenario scenario(const std::string& folder) {
    Scenario s = testing::tiny_gpt("zero_infinity", testing::kTight);
    s.workload.micro_batches = 1;
    s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 << 10;
    s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 1 << 20;
    s.steps = 3;
    s.checkpoint = {folder + "/saved", 1, 10};
    return s;
  }
  struct Ending {
    LiveResult result;
    Checkpoints saved;
    std::int64_t calls = 0;
    bool failed = false;
  };
  static Ending run(std::int64_t first) {
    const testing::TestFolder folder;
    Faults none;
    const FailingAllocations failing{first, GetParam().all_after, GetParam().this_thread};
    LiveRun run{.streams = GetParam().streams, .checked = false};
    run.limit = kLimit;
    run.failing = &failing;
    Ending ending;
    ending.result = run_live(scenario(folder.path()), none, run);
    ending.calls = ArmedAllocations::calls();
    ending.failed = ArmedAllocations::failed();
    ending.saved = testing::checkpoints_in(folder.path() + "/saved");
    return ending;
  }
};

TEST_P(AllocationTest, ThatFailsLeavesTheStepWholeOrNotBegun) {
  if (testing::kSanitized) GTEST_SKIP() << "memory is the sanitizer's";
  const Ending clean = run(-1);
  ASSERT_EQ(clean.result.error, "");
  ASSERT_EQ(clean.saved.size(), 3U);
  const int threads = testing::threads_now();
  const std::int64_t stride =
      test::number_from("TANDEM_EVERY_ALLOCATION", 0) != 0 ? 1 : std::max<std::int64_t>(clean.calls / kSome, 1);
  std::int64_t runs = 0, errors = 0;
  // Other calls than the first of a stride, from one length of it to the next.
  for (std::int64_t k = stride / 3; k < clean.calls && !HasFailure(); k += stride + (stride > 1 ? runs % 7 : 0)) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " of " + std::to_string(clean.calls));
    const Ending ending = run(k);
    ++runs;
    EXPECT_EQ(ending.result.waits, "") << "it hangs";
    for (const auto& [step, files] : ending.saved) EXPECT_EQ(files, clean.saved.at(step)) << step;
    if (ending.result.error.empty()) {
      EXPECT_EQ(ending.result.digests, clean.result.digests);
      EXPECT_EQ(ending.saved, clean.saved);
      continue;
    }
    ++errors;
    EXPECT_TRUE(ending.failed);
    EXPECT_THAT(ending.result.error, ::testing::HasSubstr("memory"));
  }
  EXPECT_TRUE(testing::comes_to_threads(threads)) << "a thread is left";
  std::cout << runs << " of " << clean.calls << " allocations failed, one a run, of which " << errors << " ended it\n";
  EXPECT_GT(errors, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, AllocationTest,
                         ::testing::Values(Case{"scheduling_thread", false, true, false},
                                           Case{"any_thread", false, false, false},
                                           Case{"any_thread_all_after", false, false, true},
                                           Case{"streams_scheduling_thread_all_after", true, true, true},
                                           Case{"streams_any_thread", true, false, false},
                                           Case{"streams_any_thread_all_after", true, false, true}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tandem
