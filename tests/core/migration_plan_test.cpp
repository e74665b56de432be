// What G10's plan moves, by arithmetic: ops of one second, values of gigabytes, 0.1 s a gigabyte over the bus and 1 s
// to or from the disk.
#include "core/policies/g10/migration_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/workloads/workload.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGB = 1'000'000'000, kSecond = 1'000'000'000;
constexpr std::int32_t kOps = 20;
constexpr Room kRoom{.device_bytes = 10 * kGB, .host_bytes = 100 * kGB, .disk = false};
constexpr Room kWithDisk{.device_bytes = 10 * kGB, .host_bytes = 100 * kGB, .disk = true};

// A step that takes so much from op `first` to op `last`, and 1 GB otherwise.
StepUse step_with(std::int64_t live_bytes, std::int32_t first, std::int32_t last, std::vector<InactivePeriod> periods) {
  StepUse step{std::vector<std::int64_t>(kOps, kSecond), std::vector<std::int64_t>(kOps, kGB), std::move(periods)};
  for (std::int32_t op = first; op <= last; ++op) step.live_bytes[static_cast<std::size_t>(op)] = live_bytes;
  return step;
}

MigrationPlan plan(const StepUse& step, const Room& room) {
  const HardwareProfile machine = round_machine(1 << 30);
  return plan_migrations(step, CostModel(machine), room);
}

InactivePeriod period(TensorId tensor, std::int64_t bytes, std::int32_t after, std::int32_t before) {
  return {.tensor = tensor, .bytes = bytes, .after = after, .before = before};
}

TEST(MigrationPlan, NothingLeavesWhereAllFits) {
  const MigrationPlan p = plan(step_with(10 * kGB, 5, 9, {period(0, kGB, 0, 15)}), kRoom);
  EXPECT_TRUE(p.migrations.empty());
  EXPECT_TRUE(p.fits(kRoom));
}

TEST(MigrationPlan, WhoIsAwayForLongestWhileRoomIsShortLeaves) {
  const MigrationPlan p =
      plan(step_with(11 * kGB, 5, 9, {period(0, kGB, 4, 8), period(1, kGB, 3, 12), period(2, kGB, 8, 19)}), kRoom);
  ASSERT_EQ(p.migrations.size(), 1U);
  EXPECT_EQ(p.migrations.front().period.tensor, 1);
  EXPECT_TRUE(p.fits(kRoom));
}

TEST(MigrationPlan, OfEqualWorthTheLargerLeaves) {
  const MigrationPlan p = plan(step_with(13 * kGB, 5, 9, {period(0, kGB, 3, 12), period(1, 3 * kGB, 3, 12)}), kRoom);
  ASSERT_EQ(p.migrations.size(), 1U);
  EXPECT_EQ(p.migrations.front().period.tensor, 1);
}

// 0.2 s of the bus and 2 s of the disk hide in five ops that are not overfull; nobody leaves who would be away in none
// that is.
TEST(MigrationPlan, AValueReturnsAsSoonAsThereIsRoom) {
  const MigrationPlan p = plan(step_with(11 * kGB, 5, 9, {period(0, kGB, 3, 18), period(1, kGB, 10, 18)}), kRoom);
  ASSERT_EQ(p.migrations.size(), 1U);
  EXPECT_EQ(p.migrations.front().gone, 4);
  EXPECT_EQ(p.migrations.front().back, 10);
}

// The first value has the disk's second to itself. The second one would wait for it.
TEST(MigrationPlan, ToTheDiskUnlessOthersAreOnThatWay) {
  const StepUse step = step_with(12 * kGB, 7, 9, {period(0, kGB, 3, 14), period(1, kGB, 3, 14)});
  const MigrationPlan p = plan(step, kWithDisk);
  ASSERT_EQ(p.migrations.size(), 2U);
  EXPECT_EQ(std::count_if(p.migrations.begin(), p.migrations.end(), [](auto& m) { return m.to == Tier::Disk; }), 1);
  EXPECT_EQ(*std::max_element(p.host_bytes.begin(), p.host_bytes.end()), kGB);
  // With no room on the host it waits.
  for (const Migration& m : plan(step, {.device_bytes = 10 * kGB, .host_bytes = 0, .disk = true}).migrations)
    EXPECT_EQ(m.to, Tier::Disk);
}

// A hundred gigabytes take 10 s each way: more than the 8 ops between. The step waits for them rather than not fit.
TEST(MigrationPlan, WhatCannotHideLeavesAllTheSame) {
  const MigrationPlan p = plan(step_with(109 * kGB, 5, 9, {period(0, 100 * kGB, 3, 12)}), kRoom);
  ASSERT_EQ(p.migrations.size(), 1U);
  EXPECT_TRUE(p.fits(kRoom));
  EXPECT_TRUE(plan(step_with(111 * kGB, 5, 9, {period(0, 100 * kGB, 3, 12)}), kRoom).migrations.size() == 1U)
      << "it helps, if not enough";
}

// Across the end of the step: away from op 18 of one to op 8 of the next, and back while there is room.
TEST(MigrationPlan, AwayAcrossTheStepsEnd) {
  InactivePeriod states = period(0, 2 * kGB, 17, kOps + 8);
  states.persistent = true;
  const MigrationPlan p = plan(step_with(11 * kGB, 0, 4, {states}), kRoom);
  ASSERT_EQ(p.migrations.size(), 1U);
  EXPECT_EQ(p.migrations.front().back, kOps + 5);
  EXPECT_EQ(p.live_bytes[0], 9 * kGB);
  EXPECT_EQ(p.live_bytes[18], kGB) << "it is on its way";
  EXPECT_EQ(p.host_bytes, std::vector<std::int64_t>(kOps, 2 * kGB)) << "its place there is its own";
}

// --- what a step uses ---

TEST(InactivePeriods, LiveBytesAreWhatPlainTrainingTakes) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Scenario scenario = gpt_scenario("resident", std::int64_t{1} << 30);
    scenario.workload.precision = precision;
    scenario.workload.batch = 32;
    scenario.workload.micro_batches = 2;
    const NullRun run = run_null(scenario);
    const Graph& graph = run.scheduler->graph();
    const StepUse use = use_of_step(graph, *run.estimate, step_ops(graph, 1, 0));
    const auto peak = static_cast<double>(*std::max_element(use.live_bytes.begin(), use.live_bytes.end()));
    const auto taken = static_cast<double>(run.scheduler->pool(Tier::Device).peak_bytes());
    EXPECT_NEAR(peak, taken, 0.01 * taken) << "but for what is rounded up to 512 bytes";
  }
}

TEST(InactivePeriods, StatesWaitForAWholeStep) {
  Scenario scenario = gpt_scenario("resident", std::int64_t{1} << 30);
  scenario.workload.batch = 32;
  const NullRun run = run_null(scenario);
  const Graph& graph = run.scheduler->graph();
  const std::vector<OpId> ops = step_ops(graph, 1, 0);
  const StepUse use = use_of_step(graph, *run.estimate, ops);
  const auto length = static_cast<std::int32_t>(ops.size());
  int states = 0, saved = 0;
  for (const InactivePeriod& p : use.periods) {
    const Tensor& tensor = graph.tensor(p.tensor);
    if (tensor.role == Role::OptimizerState) {
      ++states;
      EXPECT_EQ(p.before - p.after, length) << tensor.name;
      EXPECT_EQ(graph.op(ops[static_cast<std::size_t>(p.after)]).phase, Phase::OptimizerStep) << tensor.name;
    }
    if (tensor.role == Role::Activation && tensor.name.ends_with(".qkv")) {
      ++saved;
      EXPECT_EQ(graph.op(ops[static_cast<std::size_t>(p.after)]).phase, Phase::Forward) << tensor.name;
      EXPECT_EQ(graph.op(ops[static_cast<std::size_t>(p.before)]).phase, Phase::Backward) << tensor.name;
    }
    EXPECT_GT(p.before - p.after, 1);
  }
  EXPECT_GE(states, 2 * 4) << "two of each block";
  EXPECT_EQ(saved, 4) << "one of each block";
}

}  // namespace
}  // namespace tandem::testing
