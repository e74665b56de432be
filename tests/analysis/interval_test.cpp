// The critical path of a run and the interval that follows from it, on runs of known times.
#include "analysis/interval.hpp"

#include <gmock/gmock.h>

#include "analysis/analysis.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using testing::all_causes;
using testing::FakeRun;
using testing::TwoSteps;

constexpr double kDeviations = 1.6448536269514722;  // of a normal distribution, to either side of 90% of it

PathTimes path_of(FakeRun& run) {
  const RunRecord record = run.record();
  const Timeline timeline = make_timeline(record);
  return path_times(timeline.ranks.front(), find_steps(timeline), run.scenario);
}

// The second step: the first's gradient leaves (10 ns) and is used (20), the parameter comes (30), then 30 of compute.
TEST(IntervalTest, ThePathIsWhatHeldUpTheEndOfTheStep) {
  TwoSteps run;
  const PathTimes path = path_of(run);
  EXPECT_NEAR(path.of(TimeCause::Compute), 30e-9, 1e-15);
  EXPECT_NEAR(path.of(TimeCause::Copies), 40e-9, 1e-15);
  EXPECT_NEAR(path.of(TimeCause::CpuOptimizer), 20e-9, 1e-15);
  EXPECT_EQ(path.of(TimeCause::Disk), 0);
  EXPECT_EQ(path.of(TimeCause::Sharing), 0);
  EXPECT_EQ(path.other_s, 0);
}

TEST(IntervalTest, SharingIsWhatCommandsTakeBeyondTheirTimeAlone) {
  TwoSteps run;
  run.scenario.machine.h2d.bytes_per_s *= 3;  // alone the copy that took 30 ns takes 10
  const PathTimes path = path_of(run);
  EXPECT_NEAR(path.of(TimeCause::Copies), 40e-9, 1e-15);
  EXPECT_NEAR(path.of(TimeCause::Sharing), 20e-9, 1e-15);
  run.scenario.truth.copy_time = 3;  // on a machine with slow copies that is no sharing
  EXPECT_NEAR(path_of(run).of(TimeCause::Sharing), 0, 1e-15);
}

// Compute that ends while the step waits for something else is not on the path, however long it is.
TEST(IntervalTest, WhatIsHiddenDoesNotCount) {
  FakeRun run;
  const TensorId p = run.tensor("p", Role::Parameter, 1000, true);
  const OpId load = run.op("load", Phase::Load, Engine::Loader, kNone, {}, {p});
  ValueId value = run.made_by(load);
  const CommandId loaded = run.run(load, Engine::Loader, {}, 0, 1);
  CommandId update = loaded;
  for (std::int32_t step = 0; step < 2; ++step) {
    const std::int64_t t = std::int64_t{step} * 100;
    const TensorId a = run.tensor("a", Role::Activation, 10), b = run.tensor("b", Role::Activation, 10);
    const OpId hidden = run.op("forward", Phase::Forward, Engine::Compute, step, {}, {a}, 90);
    const OpId on_host = run.op("update", Phase::OptimizerStep, Engine::CpuOptimizer, step, {value}, {p}, 95);
    value = run.made_by(on_host);
    const OpId last = run.op("backward", Phase::Backward, Engine::Compute, step, {value}, {b}, 5);
    run.run(hidden, Engine::Compute, {}, t, t + 90);
    update = run.run(on_host, Engine::CpuOptimizer, {loaded}, t, t + 95);
    run.run(last, Engine::Compute, {update}, t + 95, t + 100);
  }
  const PathTimes path = path_of(run);
  EXPECT_NEAR(path.of(TimeCause::Compute), 5e-9, 1e-15);
  EXPECT_NEAR(path.of(TimeCause::CpuOptimizer), 95e-9, 1e-15);
}

// sqrt((30 x 0.1)^2 + (40 x 0.1)^2) = 5 ns, beside 20 ns of an optimizer that is known exactly.
TEST(IntervalTest, CausesAddUpAsIndependentDeviations) {
  TwoSteps run;
  run.scenario.machine.uncertainty = all_causes(0.1);
  run.scenario.machine.uncertainty[TimeCause::CpuOptimizer].relative = 0;
  const RunRecord record = run.record();
  const auto interval = analyse(record).step_interval;
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, (90 - kDeviations * 5) * 1e-9, 1e-15);
  EXPECT_NEAR(interval->high, (90 + kDeviations * 5) * 1e-9, 1e-15);
}

TEST(IntervalTest, ThereIsNoneWhereSomethingIsNotKnown) {
  TwoSteps run;
  const RunRecord record = run.record();
  EXPECT_FALSE(analyse(record).step_interval);
  run.scenario.machine.uncertainty = all_causes(0.1);
  EXPECT_TRUE(analyse(record).step_interval);
  run.scenario.machine.uncertainty.erase(TimeCause::Disk);  // the step does not use it
  EXPECT_TRUE(analyse(record).step_interval);
  run.scenario.machine.uncertainty.erase(TimeCause::Copies);
  EXPECT_FALSE(analyse(record).step_interval);
}

TEST(IntervalTest, AMeasuredRunHasNone) {
  TwoSteps run;
  run.scenario.machine.uncertainty = all_causes(0.1);
  EXPECT_FALSE(analyse(run.record("measured")).step_interval);
}

}  // namespace
}  // namespace tandem
