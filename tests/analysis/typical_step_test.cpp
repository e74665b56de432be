// Which stretch of a run a page opens on, what idle lanes wait for, and which ranks do the same.
#include "analysis/typical_step.hpp"

#include <gmock/gmock.h>

#include "analysis/equal_ranks.hpp"
#include "analysis/waits.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::FakeRun;
using ::testing::IsEmpty;
using testing::TwoSteps;

// Steps of 100 ns: a load, a forward at 20, a backward at 50, an update at 80 that ends at 110.
struct Steps : FakeRun {
  explicit Steps(std::int32_t steps) {
    for (std::int32_t step = 0; step < steps; ++step) {
      const std::int64_t t = 100 * step;
      run(op("load", Phase::Load, Engine::Loader, step, {}, {}), Engine::Loader, {}, t, t + 10);
      run(op("forward", Phase::Forward, Engine::Compute, step, {}, {}), Engine::Compute, {}, t + 20, t + 50);
      run(op("backward", Phase::Backward, Engine::Compute, step, {}, {}), Engine::Compute, {}, t + 50, t + 80);
      run(op("update", Phase::OptimizerStep, Engine::CpuOptimizer, step, {}, {}), Engine::CpuOptimizer, {}, t + 80,
          t + 110);
    }
  }
};

std::vector<std::int64_t> opened(std::int32_t steps) {
  Steps run(steps);
  const RunRecord record = run.record();
  const StepStretch step = typical_step(make_timeline(record));
  return {step.step, step.begin_ns, step.end_ns};
}

TEST(TypicalStep, GoesFromTheThirdStepsFirstForwardToTheNext) {
  EXPECT_THAT(opened(5), ElementsAre(2, 220, 320));
  EXPECT_THAT(opened(4), ElementsAre(2, 220, 320));
}

TEST(TypicalStep, OfAShortRunIsTheLastThatAnotherFollows) {
  EXPECT_THAT(opened(3), ElementsAre(1, 120, 220));
  EXPECT_THAT(opened(2), ElementsAre(0, 20, 120));
  EXPECT_THAT(opened(1), ElementsAre(0, 20, 110));
}

TEST(TypicalStep, WithoutAForwardIsTheWholeRun) {
  FakeRun run;
  run.run(run.op("load", Phase::Load, Engine::Loader, 0, {}, {}), Engine::Loader, {}, 5, 30);
  const RunRecord record = run.record();
  const StepStretch step = typical_step(make_timeline(record));
  EXPECT_EQ(step.step, kNone);
  EXPECT_EQ(step.end_ns, 30);
}

TEST(Waits, NameWhatStillRanInTheGap) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Timeline timeline = make_timeline(record);
  const RankTimeline& rank = timeline.ranks.front();
  const std::vector<Wait> waits = waits_of(rank, Engine::Compute, Blame(rank));
  ASSERT_EQ(waits.size(), 1u);  // not before the first command, nor after the last
  EXPECT_EQ(waits[0].begin_ns, 70);
  EXPECT_EQ(waits[0].end_ns, 130);
  EXPECT_EQ(waits[0].cause, Cause::H2D);
  EXPECT_EQ(rank.at(waits[0].by).started.ns, 100);
}

TEST(Waits, WhereAllWasThereIsDispatch) {
  FakeRun run;
  const OpId first = run.op("a", Phase::Forward, Engine::Compute, 0, {}, {});
  const OpId second = run.op("b", Phase::Forward, Engine::Compute, 0, {}, {});
  run.run(first, Engine::Compute, {}, 0, 10);
  run.run(second, Engine::Compute, {}, 15, 20);
  const RunRecord record = run.record();
  const Timeline timeline = make_timeline(record);
  const std::vector<Wait> waits = waits_of(timeline.ranks.front(), Engine::Compute, Blame(timeline.ranks.front()));
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].by, kNoCommand);
  EXPECT_EQ(waits[0].cause, Cause::Dispatch);
}

// A rank beside itself, one that copies less, and two whose commands come later.
TEST(EqualRanks, AreThoseWithTheSameCommandsAtTheSameTimes) {
  TwoSteps run, smaller(999);
  const RunRecord record = run.record(), other = smaller.record();
  const RankTimeline rank = make_timeline(record).ranks.front();
  Timeline timeline;
  timeline.ranks = {rank, rank, make_timeline(other).ranks.front(), rank, rank};
  timeline.ranks[3].commands[2].finished.ns += 2;
  timeline.ranks[4].commands.back().started.ns += 1;
  EXPECT_THAT(equal_ranks(timeline, 0), ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3), ElementsAre(4)));
  EXPECT_THAT(equal_ranks(timeline, 1), ElementsAre(ElementsAre(0, 1, 4), ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(equal_ranks(timeline, 2), ElementsAre(ElementsAre(0, 1, 3, 4), ElementsAre(2)));
  EXPECT_THAT(equal_ranks({}, 0), IsEmpty());
}

}  // namespace
}  // namespace tandem
