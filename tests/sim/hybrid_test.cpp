// Hybrid training in simulated time: shares of a batch on CPU and device, and updates on the CPU under the backward.
// Measured layers take the CPU as long as the device.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000, kLayers = 4, kLayerBytes = 10'000'000;

// A micro-batch takes 4 x (1 + 2) ms on either side, an update 1 ms of either. A layer's parameters and its gradient
// take 1 ms each to cross.
Scenario layers(const std::string& policy, std::int64_t micro_batches) {
  Scenario s = layers_scenario(policy, std::int64_t{1} << 30, kLayers, kLayerBytes, kMs, 2 * kMs, kMs);
  s.workload.micro_batches = micro_batches;
  s.steps = 12;
  return s;
}

double last_step_ms(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return static_cast<double>(analyse(simulation.record()).steps.times_ns.back()) / 1e6;
}

// Micro-batches that the CPU computed, by step.
std::map<std::int32_t, std::int64_t> on_cpu(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  std::map<std::int32_t, std::set<std::int32_t>> found;
  for (std::int32_t step = 0; step < scenario.steps; ++step) found[step];
  for (const auto& entry : simulation.log().entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::CpuCompute) {
        const Op& op = simulation.graph().op(command.op);
        found[op.step].insert(op.micro_batch);
      }
  std::map<std::int32_t, std::int64_t> counts;
  for (const auto& [step, micro_batches] : found) counts[step] = std::ssize(micro_batches);
  return counts;
}

Scenario with_share(Scenario scenario, const std::string& share) {
  scenario.policy.options["cpu_share"] = share;
  return scenario;
}

TEST(Hybrid, AShareIsWholeMicroBatchesFromTheFirstStepOn) {
  for (const char* policy : {"hybrid_coarse", "hybrid_fine"})
    for (const auto& [share, expected] :
         std::map<std::string, std::int64_t>{{"0", 0}, {"0.3", 1}, {"0.5", 2}, {"1", 3}})
      for (const auto& [step, count] : on_cpu(with_share(layers(policy, 4), share)))
        EXPECT_EQ(count, expected) << policy << " " << share << " in step " << step;
}

TEST(Hybrid, AShareOutOfRangeIsRefused) {
  for (const char* policy : {"hybrid_coarse", "hybrid_fine"})
    for (const char* share : {"-0.1", "1.5", "nan", "half"}) {
      const Scenario scenario = with_share(layers(policy, 4), share);
      EXPECT_THROW(Simulation simulation(scenario), ConfigError) << policy << " " << share;
    }
}

// Device alone: 8 x 12 + 4. With 4 on each side, both compute for 48 ms; the CPU waits for the first layer's parameters
// before, 1 ms a layer as it goes on, and the device for the last gradient, its sum and the updates after.
TEST(Hybrid, TwoSidesAsFastHalveAStep) {
  const double alone = last_step_ms(layers("resident", 8));
  EXPECT_NEAR(alone, 100, 0.1);
  for (const char* policy : {"hybrid_coarse", "hybrid_fine"}) {
    EXPECT_EQ(on_cpu(layers(policy, 8))[11], 4) << policy;
    EXPECT_LT(last_step_ms(layers(policy, 8)), 48 + 12) << policy;
  }
}

// While the device computes the CPU takes four times as long: what no estimate knows.
TEST(Hybrid, TheShareFollowsTheRatesThatTheRunShows) {
  Scenario scenario = layers("hybrid_coarse", 8);
  scenario.machine.interference[{Engine::CpuCompute, Engine::Compute}] = 4;
  scenario.steps = 30;
  auto shares = on_cpu(scenario);
  EXPECT_EQ(shares[4], 4) << "as the estimates have it";
  EXPECT_GE(shares[29], 1);
  EXPECT_LE(shares[29], 2);
  EXPECT_LT(last_step_ms(scenario), last_step_ms(with_share(scenario, "0.5")));
}

TEST(Hybrid, WhereTheCpuIsFarBehindTheDeviceTrainsAlone) {
  Scenario scenario = gpt_scenario("resident", std::int64_t{1} << 30);
  scenario.workload.micro_batches = 4;
  scenario.machine.cpu_flops = 1e10;  // a thousandth of the device's
  scenario.machine.cpu_optimizer_parameters_per_s = 1e6;
  const double alone = last_step_ms(scenario);
  for (const char* policy : {"hybrid_coarse", "hybrid_fine"}) {
    scenario.policy.name = policy;
    for (const auto& [step, count] : on_cpu(scenario)) EXPECT_EQ(count, 0) << policy << " in step " << step;
    EXPECT_LE(last_step_ms(scenario), alone * 1.001) << policy;
  }
}

// The CPU has the last two layers: their gradients go down and their parameters up, 10 MB each a step, and nothing
// else. The last layer's update ends before the first layer's backward does.
TEST(Hybrid, TheCpuUpdatesUnderTheBackward) {
  Scenario scenario = with_share(layers("hybrid_fine", 1), "0");
  scenario.policy.options["separation"] = "2";
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph();
  std::map<std::pair<Role, Tier>, std::int64_t> copied;
  std::map<CommandId, OpId> ops;
  TimeNs update_end, backward_end;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = ops.find(event.command); found != ops.end()) {
        const Op& op = graph.op(found->second);
        if (op.step != 6) continue;
        if (op.phase == Phase::OptimizerStep && op.layer == 3) update_end = event.finished;
        if (op.phase == Phase::Backward && op.layer == 0) backward_end = event.finished;
      }
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Run) ops[command.id] = command.op;
      if (command.kind != CommandKind::Copy) continue;
      const Value& value = graph.value(command.part.value);
      if (value.producer != kNone && graph.op(value.producer).step == 6)
        copied[{graph.tensor_of(command.part.value).role, command.target.tier}] += command.part.bytes;
    }
  }
  EXPECT_GT(update_end.ns, 0);
  EXPECT_LT(update_end, backward_end);
  const std::map<std::pair<Role, Tier>, std::int64_t> expected = {{{Role::Gradient, Tier::HostPinned}, 2 * kLayerBytes},
                                                                  {{Role::Parameter, Tier::Device}, 2 * kLayerBytes}};
  EXPECT_EQ(copied, expected);
}

}  // namespace
}  // namespace tandem::testing
