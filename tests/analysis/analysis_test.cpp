// Times, stalls, traffic, losses and throughput of hand-made runs. All expectations follow from the drawing in
// fake_run.hpp.
#include "analysis/analysis.hpp"

#include <gmock/gmock.h>

#include "analysis/resources.hpp"
#include "core/graph/kernels.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::FakeRun;
using testing::TwoSteps;

constexpr double kNs = 1e-9;

TEST(Analysis, StepTimesAreDifferencesOfTheEndsOnTheComputeLane) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_THAT(analysis.steps.ends_ns, ElementsAre(70, 160));
  EXPECT_THAT(analysis.steps.times_ns, ElementsAre(90));
  EXPECT_EQ(analysis.steps.head_ns, 70);
  EXPECT_EQ(analysis.steps.tail_ns, 190 - 160);
  EXPECT_DOUBLE_EQ(analysis.step_s.median, 90 * kNs);
  EXPECT_DOUBLE_EQ(analysis.mean_step_s, 190 * kNs / 2);
}

// The compute lane's gap 70..130: the copy ran 100..130, for which the update ran 80..100, for which the gradient came
// down 70..80.
TEST(Analysis, ExposedTimeGoesToWhatRanWhileTheLaneWaited) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_DOUBLE_EQ(analysis.compute_s, 30 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("h2d"), 30 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("cpu_optimizer"), 20 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("d2h"), 10 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("disk"), 0);
  double total = analysis.compute_s;
  for (const auto& [cause, s] : analysis.exposed_s) total += s;
  EXPECT_NEAR(total, analysis.step_s.median, 1e-15);
}

// The critical path of 70..160, back from b1: 30 ns of compute, 30 up, 20 of the update, 10 down.
TEST(Analysis, TheCriticalPathAddsUpToTheStep) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  double total = 0;
  for (const PathPart& part : analysis.path) total += part.seconds;
  EXPECT_NEAR(total, analysis.steady_step_s, 1e-15);
  ASSERT_EQ(analysis.path.size(), 5);
  EXPECT_EQ(analysis.path[0].cause, Cause::H2D);
  EXPECT_EQ(analysis.path[0].what, "parameter");
  EXPECT_DOUBLE_EQ(analysis.path[0].seconds, 30 * kNs);
  const auto backward = std::find_if(analysis.path.begin(), analysis.path.end(),
                                     [](const PathPart& part) { return part.what == "backward"; });
  ASSERT_NE(backward, analysis.path.end());
  EXPECT_DOUBLE_EQ(backward->seconds, 10 * kNs);
}

TEST(Analysis, WhatHoldsAStepIsTheDevicesWorkOrItsLongestWait) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_EQ(analysis.holder.cause, "h2d");
  EXPECT_NEAR(analysis.holder.share, 30.0 / 90, 1e-9);
  EXPECT_EQ(holder(5, {{"h2d", 3}, {"d2h", 2}}).cause, "compute");
  EXPECT_EQ(holder(4, {{"h2d", 3}, {"d2h", 3.5}}).cause, "d2h");
  EXPECT_EQ(holder(0, {}).share, 0);
}

// A product of 17 flops a byte and a kernel that streams, on a device that does 10 flops a byte.
TEST(Analysis, TheRooflineSumsKernelsByWhatBoundsThem) {
  FakeRun run;
  run.scenario.machine.peak_flops[DType::F32] = 1e13;
  run.scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s = 1e12;
  Work work;
  work.body = "forward";
  work.kernels = {gemm(100, 100, 100, DType::F32), memory_kernel(1'000'000)};
  Op op;
  op.label = run.graph.intern("forward");
  op.work = run.graph.add_work(work);
  op.engines = engine_bit(Engine::Compute);
  op.step = 0;
  run.run(run.graph.append(std::move(op)), Engine::Compute, {}, 0, 1200);
  const RunRecord record = run.record();
  const Roofline at = analyse(record).roofline;
  EXPECT_DOUBLE_EQ(at.flops, 2e6);
  EXPECT_DOUBLE_EQ(at.bytes, 120'000 + 1e6);
  EXPECT_DOUBLE_EQ(at.arithmetic_s, 200 * kNs);
  EXPECT_DOUBLE_EQ(at.memory_s, 1000 * kNs);
  EXPECT_DOUBLE_EQ(at.balance(), 10);
}

TEST(Analysis, IdleTimeByCauseFillsEveryLane) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  for (const LaneReport& lane : analysis.lanes) {
    std::int64_t total = lane.use.busy_ns;
    for (std::int64_t ns : lane.use.idle_ns) total += ns;
    EXPECT_EQ(total, analysis.steps.windows_ns()) << name_of(lane.lane);
  }
  // H2D in 70..160: busy 100..130, before that the update and the gradient, after it nothing more to do.
  const auto h2d = std::find_if(analysis.lanes.begin(), analysis.lanes.end(),
                                [](const LaneReport& lane) { return lane.lane == Engine::H2D; });
  ASSERT_NE(h2d, analysis.lanes.end());
  EXPECT_EQ(h2d->use.busy_ns, 30);
  EXPECT_EQ(h2d->use.idle_ns[static_cast<std::size_t>(Cause::CpuOptimizer)], 20);
  EXPECT_EQ(h2d->use.idle_ns[static_cast<std::size_t>(Cause::D2H)], 10);
  EXPECT_EQ(h2d->use.idle_ns[static_cast<std::size_t>(Cause::NoWork)], 30);
  EXPECT_EQ(h2d->use.bytes, 2000);
}

TEST(Analysis, LossesAreMeansOverMicroBatchesOneAStep) {
  TwoSteps run;
  const RunRecord measured = run.record("measured");
  EXPECT_THAT(analyse(measured).loss, ElementsAre(DoubleEq(3.0), DoubleEq(2.0)));
  const RunRecord simulated = run.record("simulated");
  EXPECT_TRUE(analyse(simulated).loss.empty());
}

TEST(Analysis, MicroBatchesAreAveraged) {
  FakeRun run;
  const TensorId a = run.tensor("a", Role::Activation, 8);
  for (std::int64_t i = 0; i < 2; ++i) {
    const OpId f = run.op("forward", Phase::Forward, Engine::Compute, 0, {}, {a}, 10, 0, true);
    run.run(f, Engine::Compute, {}, i * 10, i * 10 + 10, i == 0 ? 1.0 : 4.0);
  }
  const RunRecord record = run.record("measured");
  EXPECT_THAT(analyse(record).loss, ElementsAre(DoubleEq(2.5)));
}

// Three steps of 10 ns with gaps of 2; an evaluation of 30 ns follows the second.
struct Evaluated : FakeRun {
  Evaluated() {
    scenario.optimizer.clip_norm = 1;
    const TensorId a = tensor("a", Role::Activation, 8);
    std::int64_t t = 0;
    const auto take = [&](const char* label, Phase phase, std::int32_t step, std::int64_t ns, double result) {
      run(op(label, phase, Engine::Compute, step, {}, {a}, ns, 0, /*has_result=*/true), Engine::Compute, {}, t, t + ns,
          result);
      t += ns;
    };
    for (std::int32_t step = 0; step < 3; ++step) {
      take("forward", Phase::Forward, step, 7, 5.0 - step);
      take("clip", Phase::Reduce, step, 3, 3.0 * (step + 1));
      t += 2;
      if (step != 1) continue;
      take("evaluate", Phase::Evaluate, step, 20, 4.0);
      take("evaluate", Phase::Evaluate, step, 10, 7.0);
    }
  }
};

TEST(Analysis, EvaluationsAreNoPartOfStepTimes) {
  Evaluated run;
  const RunRecord record = run.record("measured");
  const Analysis analysis = analyse(record);
  EXPECT_THAT(analysis.steps.ends_ns, ElementsAre(10, 22, 64));
  EXPECT_THAT(analysis.steps.times_ns, ElementsAre(12, 10));
  EXPECT_EQ(analysis.steps.windows_ns(), 22);
  EXPECT_DOUBLE_EQ(analysis.compute_s, 10 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("dispatch"), 1 * kNs);  // the gap before the second step, over two
  for (const LaneReport& lane : analysis.lanes) EXPECT_EQ(lane.use.commands, 8);
}

TEST(Analysis, ValidationLossesAndNormsOfGradients) {
  Evaluated run;
  const RunRecord record = run.record("measured");
  const Analysis analysis = analyse(record);
  EXPECT_THAT(analysis.loss, ElementsAre(5.0, 4.0, 3.0));
  EXPECT_THAT(analysis.gradient_norm, ElementsAre(3.0, 6.0, 9.0));
  ASSERT_EQ(analysis.validation_loss.size(), 1U);
  EXPECT_EQ(analysis.validation_loss[0].step, 2);
  EXPECT_DOUBLE_EQ(analysis.validation_loss[0].loss, 5.5);
  const RunRecord simulated = run.record("simulated");
  EXPECT_TRUE(analyse(simulated).validation_loss.empty());
  EXPECT_TRUE(analyse(simulated).gradient_norm.empty());
}

TEST(Analysis, OneStepIsItsOwnWindow) {
  FakeRun run;
  const OpId f = run.op("forward", Phase::Forward, Engine::Compute, 0, {}, {run.tensor("a", Role::Activation, 8)}, 10);
  run.run(f, Engine::Compute, {}, 5, 15);
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_TRUE(analysis.steps.times_ns.empty());
  EXPECT_DOUBLE_EQ(analysis.step_s.median, 15 * kNs);
  EXPECT_DOUBLE_EQ(analysis.compute_s, 10 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("dispatch"), 5 * kNs);  // nothing that ran explains the wait
}

// A scheduler may hold a command back until it sees an event, without a wait_for: the event's command is the cause.
TEST(Analysis, ACommandIssuedOnAnEventWaitedForThatEvent) {
  FakeRun run;
  const TensorId a = run.tensor("a", Role::Activation, 8), p = run.tensor("p", Role::Parameter, 8);
  const OpId first = run.op("first", Phase::Forward, Engine::Compute, 0, {}, {a}, 10);
  const OpId other = run.op("other", Phase::Load, Engine::DiskRead, kNone, {}, {p}, 50);
  const OpId second = run.op("second", Phase::Forward, Engine::Compute, 0, {}, {a}, 10);
  run.run(first, Engine::Compute, {}, 0, 10);
  const CommandId disk = run.run(other, Engine::DiskRead, {}, 0, 50);
  run.turn(52);
  run.seen_now(disk);
  run.run(second, Engine::Compute, {}, 55, 65);
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("disk"), 40 * kNs);
  EXPECT_DOUBLE_EQ(analysis.exposed_s.at("dispatch"), 5 * kNs);
}

TEST(Analysis, AStepThatWasCutShortDoesNotCount) {
  TwoSteps run;
  run.entries.front().commands.pop_back();  // the last update, and its event
  run.events.pop_back();
  const RunRecord record = run.record();
  EXPECT_THAT(analyse(record).steps.ends_ns, ElementsAre(70));
}

TEST(Analysis, ARunWithoutCommandsHasNoTimes) {
  FakeRun run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_EQ(analysis.timeline.commands_count, 0);
  EXPECT_EQ(analysis.step_s.median, 0);
  EXPECT_EQ(analysis.bound.overall(), 0);
}

TEST(Analysis, QuantilesInterpolate) {
  const Spread spread = spread_of({4, 1, 3, 2, 5}, 0);
  EXPECT_DOUBLE_EQ(spread.median, 3);
  EXPECT_DOUBLE_EQ(spread.p10, 1.4);
  EXPECT_DOUBLE_EQ(spread.p90, 4.6);
}

TEST(Memory, CountsFromTheFirstWriteToTheRelease) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Timeline timeline = make_timeline(record);
  const MemorySeries memory = memory_over_time(timeline.ranks[0]);
  const auto at = [&](Tier tier, std::int64_t ns, Role role) {
    std::int64_t bytes = 0;
    for (const MemoryPoint& point : memory.of(tier))
      if (point.at_ns <= ns) bytes = point.bytes[static_cast<std::size_t>(role)];
    return bytes;
  };
  EXPECT_EQ(at(Tier::Device, 9, Role::Parameter), 0);
  EXPECT_EQ(at(Tier::Device, 10, Role::Parameter), 1000);   // the copy starts
  EXPECT_EQ(at(Tier::Device, 150, Role::Parameter), 1000);  // the next version takes the same place
  EXPECT_EQ(at(Tier::Device, 39, Role::Activation), 0);
  EXPECT_EQ(at(Tier::Device, 40, Role::Activation), 500);
  EXPECT_EQ(at(Tier::Device, 69, Role::Activation), 500);
  EXPECT_EQ(at(Tier::Device, 70, Role::Activation), 0);  // its release waits for the backward
  EXPECT_EQ(at(Tier::HostPinned, 75, Role::Gradient), 1000);
}

TEST(Memory, ReleasingPartOfAStretchLeavesTheRest) {
  FakeRun run;
  const TensorId a = run.tensor("a", Role::Activation, 1000), b = run.tensor("b", Role::Activation, 400);
  const OpId f = run.op("f", Phase::Forward, Engine::Compute, 0, {}, {a}, 10);
  const OpId g = run.op("g", Phase::Forward, Engine::Compute, 0, {}, {b}, 10);
  const CommandId first = run.run(f, Engine::Compute, {}, 0, 10, 0, {0});
  run.run(g, Engine::Compute, {}, 10, 20, 0, {5000});
  run.release(run.made_by(g), Tier::Device, 300, {first});  // 400 bytes in the middle of a's
  const RunRecord record = run.record();
  const Timeline timeline = make_timeline(record);
  const MemorySeries memory = memory_over_time(timeline.ranks[0]);
  EXPECT_EQ(memory.of(Tier::Device).back().total(), 600 + 400);
}

TEST(Memory, ThinningKeepsThePeak) {
  TierSeries series(1000);
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i].at_ns = static_cast<std::int64_t>(i);
    series[i].bytes[0] = i == 617 ? 999 : 1;
  }
  const TierSeries few = thinned(series, 50);
  EXPECT_LE(few.size(), 50u);
  EXPECT_EQ(std::max_element(few.begin(), few.end(), [](auto& a, auto& b) { return a.total() < b.total(); })->total(),
            999);
}

// The timed step is 70 to 160: the GPU runs from 130 to 160, the CPU from 80 to 100, copies go up from 100 to 130 and
// down from 70 to 80.
TEST(Resources, IdleSharesAndTrafficOfTheTimedSteps) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  const auto idle = idle_shares(analysis.timeline, analysis.steps);
  EXPECT_THAT(idle.at("gpu"), DoubleEq(1 - 30.0 / 90));
  EXPECT_THAT(idle.at("cpu"), DoubleEq(1 - 20.0 / 90));
  EXPECT_THAT(idle.at("h2d"), DoubleEq(1 - 30.0 / 90));
  EXPECT_THAT(idle.at("d2h"), DoubleEq(1 - 10.0 / 90));
  EXPECT_EQ(idle.at("disk"), 1);
  // The first step's parameters came before, the second's gradient left after.
  EXPECT_EQ(bytes_a_step(analysis.timeline, analysis.steps),
            (std::map<std::string, double>{{"device0/h2d", 1000}, {"device0/d2h", 1000}}));
  EXPECT_EQ(parameter_count(analysis.timeline), 250);
}

}  // namespace
}  // namespace tandem
