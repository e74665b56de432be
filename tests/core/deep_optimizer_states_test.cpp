// Deep Optimizer States: which sub-groups are updated where, which states travel, and the stride by hand.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/errors.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using testing::gpt_scenario;
using testing::run_null;

constexpr std::int64_t kAmple = std::int64_t{1} << 30;

Scenario scenario_with(std::map<std::string, std::string> options) {
  Scenario scenario = gpt_scenario("deep_optimizer_states", kAmple, /*layers=*/6);  // 8 buckets, 3 steps
  scenario.workload.keys["tied_embedding"] = false;
  scenario.policy.options = std::move(options);
  return scenario;
}

// The layers that are updated on the device.
std::set<std::int32_t> updated_on_device(const Scenario& scenario) {
  const auto run = run_null(scenario);
  EXPECT_EQ(run.violation, "");
  std::set<std::int32_t> layers;
  for (const auto& entry : run.log.entries())
    for (const Command& command : entry.commands) {
      if (command.kind != CommandKind::Run) continue;
      const Op& op = run.scheduler->graph().op(command.op);
      if (op.phase == Phase::OptimizerStep && command.lane.kind() == Engine::Compute) layers.insert(op.layer);
    }
  return layers;
}

using Layers = std::set<std::int32_t>;

TEST(DeepOptimizerStates, EveryKthSubGroupIsUpdatedOnTheDevice) {
  EXPECT_EQ(updated_on_device(scenario_with({{"stride", "1"}})), (Layers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(updated_on_device(scenario_with({{"stride", "2"}})), (Layers{1, 3, 5, 7}));
  EXPECT_EQ(updated_on_device(scenario_with({{"stride", "3"}})), (Layers{2, 5}));
  EXPECT_EQ(updated_on_device(scenario_with({{"stride", "3"}, {"resident_buckets", "2"}})), (Layers{2, 5, 6, 7}));
  EXPECT_EQ(updated_on_device(scenario_with({{"stride", "9"}})), Layers{});
}

// A parameter on a machine of round numbers, fp32: 8 bytes of states come in in 0.8 ns, its 4 bytes in 0.4 ns, and the
// device updates it in 0.03 ns. If the CPU takes 1 ns, two of its updates hide one of the device's (2 x 1 against
// 0.83 + 2 x 0.4); with 2 ns, one does; with 0.33 ns, the new parameters alone take the bus longer.
TEST(DeepOptimizerStates, TheStrideIsTheLeastThatHidesTheBus) {
  Scenario scenario = scenario_with({});
  EXPECT_EQ(updated_on_device(scenario), (Layers{2, 5}));
  scenario.machine.cpu_optimizer_parameters_per_s = 0.5e9;
  EXPECT_EQ(updated_on_device(scenario), (Layers{1, 3, 5, 7}));
  scenario.machine.cpu_optimizer_parameters_per_s = 3e9;
  EXPECT_EQ(updated_on_device(scenario), Layers{});
}

TEST(DeepOptimizerStates, StatesTravelForTheDevicesSubGroupsAlone) {
  const auto run = run_null(scenario_with({{"stride", "3"}, {"resident_buckets", "2"}}));
  const Graph& graph = run.scheduler->graph();
  std::map<std::int32_t, int> in, out;  // copies of states after the first step, by layer
  for (const auto& entry : run.log.entries())
    for (const Command& command : entry.commands) {
      if (command.kind != CommandKind::Copy) continue;
      const Tensor& tensor = graph.tensor_of(command.part.value);
      if (tensor.role != Role::OptimizerState || graph.value(command.part.value).version == 0) continue;
      ++(command.target.tier == Tier::Device ? in : out)[tensor.layer];
    }
  // Two moments; versions 1 and 2 come in, 1 to 3 go home.
  EXPECT_EQ(in, (std::map<std::int32_t, int>{{2, 4}, {5, 4}}));
  EXPECT_EQ(out, (std::map<std::int32_t, int>{{2, 6}, {5, 6}}));
}

TEST(DeepOptimizerStates, RefusesAStrideOfNone) {
  for (const char* stride : {"0", "-1", "some"})
    EXPECT_THROW(run_null(scenario_with({{"stride", stride}})), ConfigError) << stride;
}

}  // namespace
}  // namespace tandem
