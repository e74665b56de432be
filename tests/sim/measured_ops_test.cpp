// The simulator's truth goes by measured ops, and what is said of a step says how much of it does.
#include "core/machine/measured_ops.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "analysis/analysis.hpp"
#include "report/json_result.hpp"
#include "report/summary.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario question() {
  Scenario s = gpt_scenario("resident", 64 * kMiB);
  s.steps = 5;
  return s;
}

// Rows of all ops of the scenario on the compute lane whose bodies have the word in their names: so many us each.
std::shared_ptr<const MeasuredOps> rows_of(const Scenario& scenario, const std::string& word, std::int64_t us,
                                           double spread = 0) {
  Simulation simulation(scenario);
  simulation.run();
  auto ops = std::make_shared<MeasuredOps>();
  const std::int64_t ns = us * 1000, away = std::llround(spread * static_cast<double>(ns));
  for (WorkId id = 0; id < simulation.graph().work_count(); ++id)
    if (const Work& work = simulation.graph().work(id); work.body.find(word) != std::string::npos)
      ops->rows[op_key(work, Engine::Compute)] = {{ns, ns - away, ns + away, 9}, {}, 0, 0, 0, "test"};
  return ops;
}

TEST(MeasuredOpsInTruth, CommandsTakeWhatWasMeasured) {
  Scenario scenario = question();
  scenario.machine.ops = rows_of(scenario, "", 123);
  Simulation simulation(scenario);
  simulation.run();
  const RunRecord record = simulation.record();
  const Timeline timeline = make_timeline(record);
  int seen = 0;
  for (const CommandId id : timeline.ranks[0].lane(Engine::Compute)) {
    const TimedCommand& timed = timeline.ranks[0].at(id);
    if (timed.command->kind != CommandKind::Run) continue;
    EXPECT_EQ(timed.finished.ns - timed.started.ns, 123'000) << command_name(simulation.graph(), *timed.command);
    ++seen;
  }
  EXPECT_GE(seen, 5 * 12) << "six modules forward and backward, each step";
}

TEST(MeasuredOpsInTruth, RowsOfOtherOpsChangeNothing) {
  const Scenario plain = question();
  Scenario other = plain;
  auto ops = std::make_shared<MeasuredOps>(*rows_of(plain, "", 123));
  MeasuredOps elsewhere;
  for (auto& [key, op] : ops->rows) {
    OpKey of_other_size = key;
    of_other_size.sizes.push_back(1);
    elsewhere.rows[of_other_size] = op;
  }
  other.machine.ops = std::make_shared<const MeasuredOps>(elsewhere);
  const auto end_ns = [](const Scenario& scenario) {
    Simulation simulation(scenario);
    simulation.run();
    return simulation.log().entries().back().batch.observed.ns;
  };
  EXPECT_EQ(end_ns(plain), end_ns(other));
}

void analysed(const Scenario& scenario, const std::function<void(const Analysis&)>& look) {
  Simulation simulation(scenario);
  simulation.run();
  const RunRecord record = simulation.record();
  look(analyse(record));
}

TEST(MeasuredOpsInSummaries, WithoutThemNothingIsSaid) {
  analysed(question(), [](const Analysis& analysis) {
    EXPECT_FALSE(to_json(analysis).contains("measured_ops"));
    EXPECT_EQ(summary(analysis, {}).find("rests on"), std::string::npos);
  });
}

TEST(MeasuredOpsInSummaries, SayWhichOpsAreModelled) {
  Scenario scenario = question();
  scenario.machine.ops = rows_of(scenario, "block", 1000);
  analysed(scenario, [](const Analysis& analysis) {
    EXPECT_GT(analysis.measured.share, 0.5);
    EXPECT_LT(analysis.measured.share, 1);
    EXPECT_EQ(analysis.measured.measured, 2) << "forward and backward";
    const auto json = to_json(analysis)["measured_ops"];
    EXPECT_EQ(json["count"], 2);
    EXPECT_TRUE(json["modelled"].contains("gpt.head.forward")) << json;
    EXPECT_FALSE(json["modelled"].contains("gpt.block.forward")) << json;
    EXPECT_NE(summary(analysis, {}).find("of computing in 2 measured ops; modelled: "), std::string::npos)
        << summary(analysis, {});
  });
}

double half_width(const Scenario& scenario) {
  double half = 0;
  analysed(scenario, [&](const Analysis& analysis) {
    ASSERT_TRUE(analysis.step_interval);
    half = analysis.step_interval->width() / 2 / analysis.step_s.median;
  });
  return half;
}

TEST(MeasuredOpsInIntervals, TheirSpreadStandsInTheProfilesPlace) {
  constexpr double kOf90 = 1.6448536269514722, kOfP10P90 = 1.2815515655446004;
  Scenario scenario = question();
  for (int i = 0; i < kTimeCauseCount; ++i) scenario.machine.uncertainty[static_cast<TimeCause>(i)] = {0, "test"};
  scenario.machine.uncertainty[TimeCause::Compute] = {0.2, "test"};
  EXPECT_NEAR(half_width(scenario), kOf90 * 0.2, 0.01) << "all of the step is modelled computing";
  scenario.machine.ops = rows_of(scenario, "", 123, 0.05);
  EXPECT_NEAR(half_width(scenario), kOf90 * 0.05 / kOfP10P90, 0.003) << "all of it was measured";
  scenario.machine.uncertainty.erase(TimeCause::Compute);
  EXPECT_NEAR(half_width(scenario), kOf90 * 0.05 / kOfP10P90, 0.003) << "nothing is asked of the model";
}

}  // namespace
}  // namespace tandem::testing
