// What the seam must carry beyond one device and a fixed graph: several ranks with collectives, and a graph that grows
// by the tokens that are sampled.
#include <gtest/gtest.h>

#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

TEST(Slices, RanksReduceTheirGradientsInGraphOrder) {
  Scenario scenario = testing::gpt_scenario("resident", std::int64_t{1} << 30);
  scenario.workload.devices = 2;
  const CostModel estimate(scenario.machine);
  for (std::uint64_t seed : {0, 1, 2, 3}) {
    const auto first = make_scheduler(scenario, estimate, 0);
    const auto second = make_scheduler(scenario, estimate, 1);
    MemoryLog log;
    HappensBefore check_first(first->graph(), 0, &log), check_second(second->graph(), 1, &check_first);
    NullExecutor::Options options;
    options.ranks = 2;
    options.seed = seed;
    NullExecutor executor(options);
    Scheduler* ranks[] = {first.get(), second.get()};
    drive(ranks, executor, check_second);
    EXPECT_EQ(check_first.violation() + check_second.violation(), "");
    std::vector<Match> order[2];
    for (const auto& entry : log.entries())
      for (const Command& command : entry.commands)
        if (command.lane.kind() == Engine::Collective) order[command.lane.rank].push_back(command.match);
    EXPECT_FALSE(order[0].empty());
    EXPECT_EQ(order[0], order[1]);
  }
}

TEST(Slices, DecodingEndsWithTheSampledStopToken) {
  Scenario scenario = testing::gpt_scenario("on_demand", 1 << 30);
  scenario.workload.family = "gpt_decode";
  scenario.workload.batch = 1;
  scenario.workload.keys["prompt"] = 4;
  scenario.workload.keys["new_tokens"] = 20;
  scenario.workload.keys["stop_token"] = 9;
  scenario.steps = 100;
  for (std::int64_t stop_at : {1, 5, 100}) {
    std::int64_t sampled = 0;
    NullExecutor::Options options;
    Graph const* graph = nullptr;
    options.result = [&](const Command& command) -> std::int64_t {
      if (command.op == kNone || !graph->op(command.op).grows) return 0;
      return ++sampled == stop_at ? 9 : 7;
    };
    const CostModel estimate(scenario.machine);
    const auto scheduler = make_scheduler(scenario, estimate);
    graph = &scheduler->graph();
    HappensBefore checker(*graph);
    NullExecutor executor(options);
    Scheduler* ranks[] = {scheduler.get()};
    drive(ranks, executor, checker);
    EXPECT_EQ(checker.violation(), "");
    EXPECT_EQ(sampled, std::min<std::int64_t>(stop_at, 20));
  }
}

}  // namespace
}  // namespace tandem
