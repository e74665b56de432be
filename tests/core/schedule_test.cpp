// The learning rate of each training step, beside its closed forms.
#include "core/scenario/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

OptimizerOptions options(const char* schedule, std::int64_t warmup, std::int64_t decay = 0) {
  OptimizerOptions o;
  o.learning_rate = 0.8;
  o.final_learning_rate = 0.2;
  o.schedule = schedule;
  o.warmup_steps = warmup;
  o.decay_steps = decay;
  return o;
}

TEST(Schedule, WithoutAScheduleTheRateIsTheOption) {
  const OptimizerOptions o;
  for (const std::int64_t step : {0, 1, 3, 4, 1000000000}) EXPECT_EQ(learning_rate(o, step, 4), o.learning_rate);
}

TEST(Schedule, WarmUpIsLinearAndEndsAtTheLearningRate) {
  for (const char* schedule : {"constant", "linear", "cosine"}) {
    const OptimizerOptions o = options(schedule, 4);
    for (std::int64_t step = 0; step < 4; ++step)
      EXPECT_DOUBLE_EQ(learning_rate(o, step, 100), 0.2 * static_cast<double>(step + 1)) << schedule;
    EXPECT_EQ(learning_rate(o, 4, 100), 0.8) << schedule;
  }
  EXPECT_EQ(learning_rate(options("constant", 4), 99, 100), 0.8);
}

TEST(Schedule, LinearAndCosineFallToTheFinalRateAndStayThere) {
  const OptimizerOptions linear = options("linear", 10, 110), cosine = options("cosine", 10, 110);
  for (std::int64_t step = 10; step <= 110; ++step) {
    const double p = static_cast<double>(step - 10) / 100;
    EXPECT_NEAR(learning_rate(linear, step, 7), 0.8 - 0.6 * p, 1e-15);
    EXPECT_NEAR(learning_rate(cosine, step, 7), 0.2 + 0.6 * 0.5 * (1 + std::cos(std::acos(-1.0) * p)), 1e-15);
  }
  for (const OptimizerOptions& o : {linear, cosine}) {
    EXPECT_EQ(learning_rate(o, 110, 7), 0.2);
    EXPECT_EQ(learning_rate(o, 1000000, 7), 0.2);
  }
}

TEST(Schedule, WithoutDecayStepsTheTrainingsStepsCount) {
  EXPECT_EQ(learning_rate(options("linear", 0), 50, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options("cosine", 0), 50, 100), 0.5);
  EXPECT_EQ(learning_rate(options("linear", 0), 100, 100), 0.2);
}

// A trial of a few steps of a long schedule.
TEST(Schedule, ARunMayEndInItsWarmUp) {
  const OptimizerOptions o = options("cosine", 100);
  EXPECT_DOUBLE_EQ(learning_rate(o, 3, 4), 0.8 * 4 / 100);
  EXPECT_EQ(learning_rate(o, 100, 4), 0.2);
}

TEST(Schedule, OfAScenarioIsThatOfItsOptions) {
  Scenario scenario;
  scenario.optimizer = options("linear", 0);
  scenario.steps = 8;
  EXPECT_EQ(learning_rate(scenario, 2), learning_rate(scenario.optimizer, 2, 8));
}

TEST(Schedule, EvaluationsFollowEveryNthStepAndTheLast) {
  const auto steps = [](std::int32_t every, std::int64_t of) {
    std::vector<std::int64_t> found;
    for (std::int64_t step = 0; step < of; ++step)
      if (evaluates_after({.every = every}, step, of)) found.push_back(step);
    return found;
  };
  EXPECT_EQ(steps(0, 10), (std::vector<std::int64_t>{}));
  EXPECT_EQ(steps(4, 10), (std::vector<std::int64_t>{3, 7, 9}));
  EXPECT_EQ(steps(5, 10), (std::vector<std::int64_t>{4, 9}));
  EXPECT_EQ(steps(100, 3), (std::vector<std::int64_t>{2}));
}

}  // namespace
}  // namespace tandem
