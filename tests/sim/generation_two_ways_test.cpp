// What ranks are told that divide a network's weights two ways.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/passes.hpp"
#include "sim/simulate.hpp"
#include "tests/common/generation.hpp"

namespace tandem::testing {
namespace {

// Of 2 x 2 ranks that add up what they made of a product, the first has the bias in it.
TEST(GenerationTwoWays, OneOfThoseThatAddUpHasTheBias) {
  Scenario s = generating_scenario("resident", std::int64_t{1} << 30);
  s.workload.tensor = 4, s.workload.parallel["hidden"] = 2;
  Simulation simulation(s);
  simulation.run();
  std::map<std::string, std::vector<std::int64_t>> parts;  // by layer of a block: those of ranks 0, 1, 2, 3
  for (Rank rank = 0; rank < 4; ++rank) {
    std::map<std::string, std::int64_t> own;
    const Graph& graph = simulation.graph(rank);
    for (OpId id = 0; id < graph.op_count(); ++id)
      if (const auto& pass = graph.work_of(graph.op(id)).pass)
        for (const PassCall& made : pass->calls)
          if (std::string_view(made.call->what->name) == "linear")
            own[made.call->name] = made.call->how.integer("part", 0);
    for (const auto& [name, part] : own) parts[name].push_back(part);
  }
  using Parts = std::vector<std::int64_t>;
  for (const char* name : {"qkv", "up"})
    EXPECT_EQ(parts[name], (Parts{0, 0, 1, 1})) << name << " reads some of the width";
  for (const char* name : {"projection", "down"}) EXPECT_EQ(parts[name], (Parts{0, 1, 0, 1})) << name;
}

}  // namespace
}  // namespace tandem::testing
