// Of many ranks one copy is told of: reports say what they say of all.
#include "analysis/told_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analysis.hpp"
#include "core/scenario/ranks.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class ToldRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/136); }
};

// 17 copies of two stages, whose layers four ranks divide.
Scenario many() {
  Scenario s = gpt_scenario("resident", kGiB, /*layers=*/3);
  s.workload.micro_batches = 3;
  s.workload.devices = 17;
  s.workload.tensor = 4;
  s.parallel.pipeline = 2;
  return s;
}

RunRecord of_all(const Simulation& simulation, const Scenario& scenario, const MemoryLog& log) {
  RunRecord record;
  record.mode = "simulated";
  record.scenario = &scenario;
  record.log = &log;
  for (Rank rank = 0; rank < simulation.rank_count(); ++rank)
    record.ranks.emplace_back().graph = &simulation.graph(rank);
  return record;
}

TEST_F(ToldRanks, OneCopyTellsWhatAllDo) {
  const Scenario scenario = many();
  ASSERT_GT(rank_count(scenario), kMostToldRanks);
  Simulation simulation(scenario);
  MemoryLog log;
  simulation.run(&log);
  const RunRecord told = simulation.record(), all = of_all(simulation, scenario, log);
  const Analysis few = analyse(told), many_ranks = analyse(all);
  ASSERT_EQ(few.timeline.ranks.size(), 2U);
  EXPECT_EQ(few.timeline.ranks.front().rank, 0);
  EXPECT_EQ(place_of(scenario, few.timeline.ranks.back().rank).stage, 1);
  EXPECT_EQ(few.steps.ends_ns, many_ranks.steps.ends_ns);
  EXPECT_EQ(few.run.commands, many_ranks.run.commands);
  EXPECT_EQ(few.run.makespan_ns, many_ranks.run.makespan_ns);
  EXPECT_NEAR(few.compute_s, many_ranks.compute_s, 1e-12);
  for (const auto& [cause, s] : many_ranks.exposed_s) EXPECT_NEAR(few.exposed_s.at(cause), s, 1e-12) << cause;
  EXPECT_EQ(few.parameters, many_ranks.parameters);
  EXPECT_NEAR(few.model_flops_per_s / many_ranks.model_flops_per_s, 1, 1e-12);
  ASSERT_EQ(few.stages.size(), 2U);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    ASSERT_EQ(few.stages[stage].links.size(), many_ranks.stages[stage].links.size());
    for (std::size_t link = 0; link < few.stages[stage].links.size(); ++link)
      EXPECT_EQ(few.stages[stage].links[link].bytes, many_ranks.stages[stage].links[link].bytes);
  }
}

TEST_F(ToldRanks, AllAreOfFewOrOfThoseThatDiffer) {
  const auto all_told = [](const Scenario& scenario, Rank most) {
    const std::vector<bool> told = told_ranks(scenario, most);
    return std::find(told.begin(), told.end(), false) == told.end();
  };
  Scenario scenario = many();
  EXPECT_TRUE(all_told(scenario, 136));
  EXPECT_FALSE(all_told(scenario, 135));
  Scenario offloads = scenario, slow = scenario, late = scenario, across_hosts = scenario;
  offloads.policy.name = "zero_offload";
  slow.truth.stragglers = {{.rank = 77, .factor = 3}};
  late.truth.noise = 0.1;
  across_hosts.machine.devices_per_host = 8;  // of 68 that a stage has
  for (const Scenario& differ : {offloads, slow, late, across_hosts}) EXPECT_TRUE(all_told(differ, 1));
}

// Its totals are of all steps, of the ranks that are told of.
TEST_F(ToldRanks, OfALongRunTotals) {
  Scenario scenario = layers_scenario("resident", kGiB, /*count=*/1, 1 << 20, 1000, 2000, 3000);
  scenario.workload.devices = 136;
  scenario.steps = RunLog::kDetailedSteps + 1;
  Simulation simulation(scenario);
  simulation.run();
  const RunRecord record = simulation.record();
  ASSERT_NE(record.totals, nullptr);
  EXPECT_EQ(record.ranks.size(), 1U);
  EXPECT_EQ(analyse(record).run.steps, scenario.steps);
}

}  // namespace
}  // namespace tandem::testing
