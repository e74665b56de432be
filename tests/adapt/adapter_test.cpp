// The loop over a simulated run whose machine changes, with forecasts from a script.
#include "adapt/adapter.hpp"

#include <gtest/gtest.h>

#include "core/run/make_scheduler.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/replay.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

struct Question {
  PolicyOptions now;
  Rates planned_with, rates;
  std::size_t others;
  std::int32_t step;
};

// Says what it is told to, one question later.
class ScriptedForecaster final : public Forecaster {
 public:
  ScriptedForecaster(std::vector<Question>& questions, std::map<std::string, double> step_s, double switch_s)
      : questions_(questions), step_s_(std::move(step_s)), switch_s_(switch_s) {}
  void ask(const PolicyOptions& now, const PlannedWith& plan, const std::vector<PolicyOptions>& others,
           const Rates& rates, std::int32_t step) override {
    questions_.push_back({now, plan.rates, rates, others.size(), step});
    answer_.push_back({now, step_s_.at(now.name), 0, ""});
    for (const PolicyOptions& policy : others) {
      const auto found = step_s_.find(policy.name);
      answer_.push_back({policy, found != step_s_.end() ? found->second : 0, switch_s_,
                         found != step_s_.end() ? "" : "does not fit"});
    }
  }
  std::optional<std::vector<Forecast>> answer() override {
    if (answer_.empty()) return std::nullopt;
    return std::exchange(answer_, {});
  }

 private:
  std::vector<Question>& questions_;
  std::map<std::string, double> step_s_;
  double switch_s_;
  std::vector<Forecast> answer_;
};

Scenario drifting() {
  Scenario s = testing::gpt_scenario("zero_offload", std::int64_t{64} << 20);
  s.workload.keys["hidden"] = 512;
  s.workload.precision = DType::BF16;
  s.machine.cpu_optimizer_parameters_per_s = 1e8;
  s.steps = 80;
  s.truth.noise = 0.01;
  s.truth.drift = {{.from_step = 30, .to_step = 50, .times = {.optimizer_time = 2}}};
  return s;
}

struct Adapted {
  std::vector<Question> questions;
  std::vector<AdaptDecision> decisions;
  std::string replayed;  // what differs
};

Adapted adapt(const Scenario& scenario, std::map<std::string, double> step_s, double switch_s) {
  Adapted out;
  Simulation simulation(scenario);
  MemoryLog kept;
  AdaptOptions options;
  options.candidates = adapt_candidates(scenario);
  Adapter adapter(kept, simulation.graph(), scenario,
                  std::make_unique<ScriptedForecaster>(out.questions, std::move(step_s), switch_s), options);
  simulation.run(&adapter, [&] { return adapter.take_inputs(); });
  out.decisions = adapter.decisions();
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  Scheduler* ranks[] = {scheduler.get()};
  ReadLog log;
  log.entries = kept.entries();
  out.replayed = replay(log, ranks).difference;
  return out;
}

TEST(AdapterTest, LearnsHowMuchALaneHasChangedAndThatItIsBack) {
  const Adapted r = adapt(drifting(), {{"zero_offload", 1.0}}, 0);
  std::string told;
  for (const AdaptDecision& decision : r.decisions)
    told += std::to_string(decision.step) + ": " + decision.cause + "\n";
  ASSERT_EQ(r.questions.size(), 3U) << told;
  EXPECT_EQ(r.questions[0].rates, Rates{});
  ASSERT_TRUE(r.questions[1].rates.time_ppm.contains(Engine::CpuOptimizer));
  EXPECT_NEAR(static_cast<double>(r.questions[1].rates.time_ppm.at(Engine::CpuOptimizer)), 2e6, 6e4);
  EXPECT_NEAR(static_cast<double>(r.questions[2].rates.time_ppm.at(Engine::CpuOptimizer)), 1e6, 3e4);
  ASSERT_EQ(r.decisions.size(), 3U);
  EXPECT_LE(r.decisions[1].step, 35);
  EXPECT_LE(r.decisions[2].step, 55);
  for (const AdaptDecision& decision : r.decisions) EXPECT_FALSE(decision.switches);
  EXPECT_EQ(r.replayed, "");
}

TEST(AdapterTest, AsksAnewOnceTheMixHasChanged) {
  Scenario s = testing::gpt_scenario("zero_offload", std::int64_t{64} << 20);
  s.steps = 60;
  s.workload.mix.points = {{0, {{"image", 0.1}}}, {30, {{"image", 0.9}}}, {45, {{"image", 0.85}}}};
  const Adapted r = adapt(s, {{"zero_offload", 1.0}}, 0);
  ASSERT_EQ(r.decisions.size(), 2U) << "at the start, and for a change that is large";
  EXPECT_EQ(r.decisions[1].cause, "the mix of samples has changed");
  EXPECT_GE(r.questions[1].step, 30);
  EXPECT_LE(r.questions[1].step, 32);
}

// Of the machine as it is at first.
double step_s(Scenario scenario) {
  scenario.truth.drift.clear();
  const double steps = scenario.steps;
  Simulation simulation(scenario);
  simulation.run();
  return static_cast<double>(simulation.log().entries().back().batch.observed.ns) / 1e9 / steps;
}

TEST(AdapterTest, SwitchesWhereTheRestOfTheRunGainsMoreThanItCosts) {
  // 68 steps are left at the first question.
  const double one = step_s(drifting());
  const Adapted gains = adapt(drifting(), {{"zero_offload", one}, {"balanced", 0.5 * one}}, 10 * one);
  ASSERT_GE(gains.decisions.size(), 1U);
  EXPECT_TRUE(gains.decisions[0].switches);
  EXPECT_EQ(gains.decisions[0].chosen, "balanced");
  EXPECT_TRUE(gains.decisions[0].measured_step_s.has_value());
  EXPECT_EQ(gains.replayed, "");
  const Adapted costs = adapt(drifting(), {{"zero_offload", one}, {"balanced", 0.5 * one}}, 40 * one);
  EXPECT_FALSE(costs.decisions[0].switches) << "0.48 of each of 68 steps is less than 40 of them";
  const Adapted alike = adapt(drifting(), {{"zero_offload", one}, {"balanced", 0.99 * one}}, 0);
  EXPECT_FALSE(alike.decisions[0].switches) << "forecasts are no better than that";
  // What the forecasts miss of this machine, they miss of both.
  const Adapted scaled = adapt(drifting(), {{"zero_offload", 0.5 * one}, {"balanced", 0.25 * one}}, 0);
  EXPECT_TRUE(scaled.decisions[0].switches);
  EXPECT_NEAR(scaled.decisions[0].forecast_step_s, 0.5 * one, 0.05 * one);
}

TEST(AdapterTest, CandidatesOfAnExactRunAreExactAndKeepTheSameState) {
  std::vector<std::string> names;
  for (const PolicyOptions& policy : adapt_candidates(drifting())) names.push_back(policy.name);
  EXPECT_NE(std::find(names.begin(), names.end(), "balanced"), names.end());
  for (const char* other : {"zero_offload", "lsp_offload", "one_bit_adam"})
    EXPECT_EQ(std::find(names.begin(), names.end(), other), names.end()) << other;
}

}  // namespace
}  // namespace tandem
