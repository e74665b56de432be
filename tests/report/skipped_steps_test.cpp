// Steps whose gradients were not finite: counted, told while the run goes on, and in every report.
#include "analysis/skipped_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analysis/analysis.hpp"
#include "report/json_result.hpp"
#include "report/skip_watch.hpp"
#include "report/summary.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
constexpr double kOverflow = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Scenario fp16(double scale, std::int64_t interval) {
  Scenario s;
  s.workload.precision = DType::F16;
  s.optimizer.initial_loss_scale = scale;
  s.optimizer.loss_scale_interval = interval;
  return s;
}

TEST(SkippedStepsTest, TheScaleFollowsTheNorms) {
  const Scenario scenario = fp16(64, 2);
  SkippedSteps steps(scenario, initial_loss_scale_state(scenario));
  std::vector<double> scales;
  for (const double norm : {kOverflow, kNan, 1.0, 2.0, 3.0, kOverflow, 4.0, 5.0}) {
    scales.push_back(*steps.loss_scale());
    steps.take(norm);
  }
  EXPECT_THAT(scales, ElementsAre(64, 32, 16, 16, 32, 32, 16, 16));
  EXPECT_EQ(*steps.loss_scale(), 32);
  EXPECT_EQ(steps.steps(), 8);
  EXPECT_EQ(steps.skipped(), 3);
  EXPECT_FALSE(steps.most());
}

TEST(SkippedStepsTest, MostIsMoreThanHalf) {
  for (const int good : {3, 4, 5}) {
    SkippedSteps steps(fp16(64, 2), std::nullopt);
    for (int i = 0; i < 4; ++i) steps.take(kOverflow);
    for (int i = 0; i < good; ++i) steps.take(1);
    EXPECT_EQ(steps.most(), good < 4) << good;
    EXPECT_FALSE(steps.loss_scale()) << "of a resumed run that is read back";
  }
}

TEST(SkippedStepsTest, WithoutAScaleOrANormNothingIsMadeUp) {
  Scenario clipped;
  clipped.workload.precision = DType::BF16;
  SkippedSteps steps(clipped, initial_loss_scale_state(clipped));
  EXPECT_TRUE(steps.take(kNan));
  EXPECT_FALSE(steps.take(std::nullopt));
  EXPECT_EQ(steps.skipped(), 1);
  EXPECT_FALSE(steps.loss_scale());
  Scenario resumed = fp16(64, 2);
  resumed.first_step = 3;
  EXPECT_FALSE(initial_loss_scale_state(resumed));
}

TEST(SkippedStepsTest, AdviceFitsTheCause) {
  EXPECT_THAT(advice_on_skipped(fp16(1e30, 2), 1e20), HasSubstr("lower optimizer.initial_loss_scale"));
  EXPECT_THAT(advice_on_skipped(fp16(1e30, 2), 1.0), HasSubstr("even a loss scale of 1 overflows"));
  EXPECT_THAT(advice_on_skipped(Scenario(), std::nullopt), HasSubstr("lower optimizer.learning_rate"));
}

// A run of which each step has a forward and a norm.
struct Steps : testing::FakeRun {
  explicit Steps(const std::vector<double>& norms) {
    scenario = fp16(1024, 1000);
    scenario.path = "fake.yaml";
    scenario.workload.family = "layers";
    scenario.steps = static_cast<std::int32_t>(norms.size());
    const TensorId a = tensor("a", Role::Activation, 8);
    for (std::int32_t step = 0; step < scenario.steps; ++step) {
      const std::int64_t t = std::int64_t{step} * 100;
      turn(t);
      run(op("forward", Phase::Forward, Engine::Compute, step, {}, {a}, 2, 0, true), Engine::Compute, {}, t, t + 2, 1);
      run(op("loss_scale", Phase::Reduce, Engine::Compute, step, {}, {a}, 1, 0, true), Engine::Compute, {}, t + 2,
          t + 3, norms[static_cast<std::size_t>(step)]);
    }
  }
  // What is told while it goes on.
  std::vector<std::string> told() {
    std::vector<std::string> lines;
    NoLog none;
    SkipWatch watch(none, scenario, graph, initial_loss_scale_state(scenario),
                    [&](const std::string& line) { lines.push_back(line); });
    std::size_t answered = 0;
    for (const MemoryLog::Entry& entry : entries) {
      watch.append(std::span<const Command>(entry.commands));
      for (std::size_t i = 0; i < entry.commands.size(); ++i) {
        EventBatch batch;
        batch.events.push_back(events[answered++]);
        watch.append(batch);
      }
    }
    return lines;
  }
};

std::vector<double> skipped(int count) { return std::vector<double>(static_cast<std::size_t>(count), kOverflow); }

TEST(SkipWatchTest, TellsFromTenInARowOn) {
  EXPECT_TRUE(Steps(skipped(9)).told().empty());
  const std::vector<std::string> ten = Steps(skipped(10)).told();
  ASSERT_EQ(ten.size(), 1U);
  EXPECT_THAT(ten[0], HasSubstr("10 training steps in a row were skipped, up to step 10 of 10"));
  EXPECT_EQ(Steps(skipped(19)).told().size(), 1U);
  EXPECT_EQ(Steps(skipped(45)).told().size(), 3U) << "at 10, 20 and 40";
}

TEST(SkipWatchTest, ARowEndsWithAStepThatIsTaken) {
  std::vector<double> norms = skipped(9);
  norms.push_back(1);
  for (const double norm : skipped(9)) norms.push_back(norm);
  EXPECT_TRUE(Steps(norms).told().empty());
  norms.push_back(kOverflow);
  norms.push_back(1);
  for (const double norm : skipped(10)) norms.push_back(norm);
  EXPECT_EQ(Steps(norms).told().size(), 2U) << "each row of ten";
}

TEST(SkipWatchTest, ReportsHaveTheCountAndTheScale) {
  Steps run({kOverflow, kNan, 1, kOverflow});
  RunRecord record = run.record("measured");
  record.loss_scale_before = initial_loss_scale_state(run.scenario);
  const Analysis analysis = analyse(record);
  const auto json = to_json(analysis);
  EXPECT_EQ(json.at("skipped_steps"), 3);
  EXPECT_EQ(json.at("loss_scale"), 128);
  EXPECT_THAT(summary(analysis, {}), HasSubstr("skipped      3 of 4 steps"));
  EXPECT_THAT(summary(analysis, {}), HasSubstr("loss scale is 128"));
  record.loss_scale_before.reset();
  EXPECT_FALSE(to_json(analyse(record)).contains("loss_scale"));
}

TEST(SkipWatchTest, ARunThatSkipsNothingSaysNothingOfIt) {
  Steps run({1, 1});
  run.scenario.workload.precision = DType::F32;
  const RunRecord record = run.record("measured");
  const Analysis analysis = analyse(record);
  EXPECT_EQ(to_json(analysis).at("skipped_steps"), 0);
  EXPECT_THAT(summary(analysis, {}), Not(HasSubstr("skipped")));
}

}  // namespace
}  // namespace tandem
