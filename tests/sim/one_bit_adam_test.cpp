// 1-bit Adam in simulated time: gradients leave in the warm-up, a bit for each number after it, and the momentum comes
// to the device once.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/base/errors.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/run/policies.hpp"
#include "core/transforms/one_bit.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Bytes of a role that were copied between two tiers, by the step of the op that made them.
std::map<std::int32_t, std::int64_t> copied_bytes(const Simulation& simulation, Role role, Tier from, Tier to) {
  const Graph& graph = simulation.graph();
  std::map<std::int32_t, std::int64_t> bytes;
  for (const auto& entry : simulation.log().entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Copy && command.source.tier == from && command.target.tier == to &&
          graph.tensor_of(command.part.value).role == role)
        bytes[graph.op(graph.value(command.part.value).producer).step] += command.part.bytes;
  return bytes;
}

Scenario wide_gpt(DType precision) {
  Scenario scenario = gpt_scenario("one_bit_adam", 1024 * kMiB, /*layers=*/2);
  scenario.workload.precision = precision;
  scenario.workload.keys["hidden"] = 512;
  scenario.workload.micro_batches = 2;  // whose gradients are summed before they are compressed
  scenario.steps = 5;
  scenario.policy.options["warmup_steps"] = "2";
  return scenario;
}

// A block of width h has 12 h^2 + 13 h parameters, the embedding 256 h + 32 h, the head's norm 2 h: all are multiples
// of 1,024 but biases and norms of h, 3 h and 2 h numbers, whose last blocks are short.
TEST(OneBitAdam, ABitForEachParameterLeavesTheDevice) {
  constexpr std::int64_t kWidth = 512, kParameters = 2 * (12 * kWidth * kWidth + 13 * kWidth) + 290 * kWidth;
  for (const DType precision : {DType::F32, DType::BF16}) {
    const Scenario scenario = wide_gpt(precision);
    Simulation simulation(scenario);
    simulation.run();
    auto gradients = copied_bytes(simulation, Role::Gradient, Tier::Device, Tier::HostPinned);
    for (const std::int32_t step : {0, 1}) EXPECT_EQ(gradients[step], kParameters * size_of(precision));
    const double bits = kParameters / 8.0, scales = kParameters / 1024.0 * 4;
    for (const std::int32_t step : {2, 3, 4}) {
      EXPECT_GE(gradients[step], bits + scales);
      EXPECT_LT(gradients[step], (bits + scales) * 1.005) << "short blocks and padding";
    }
    EXPECT_EQ(gradients.size(), 5u);
  }
}

TEST(OneBitAdam, TheMomentumComesToTheDeviceOnceAndParametersEachStep) {
  const Scenario scenario = wide_gpt(DType::BF16);
  Simulation simulation(scenario);
  simulation.run();
  const auto up = [&](Role role) { return copied_bytes(simulation, role, Tier::HostPinned, Tier::Device); };
  const auto parameters = up(Role::Parameter), states = up(Role::OptimizerState);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states.begin()->first, 1) << "what the last step of the warm-up has made";
  EXPECT_EQ(states.begin()->second, 2 * parameters.at(2)) << "in fp32";
  for (std::int32_t step = 0; step < 5; ++step) EXPECT_EQ(parameters.at(step), parameters.at(2)) << step;
  EXPECT_TRUE(copied_bytes(simulation, Role::OptimizerState, Tier::Device, Tier::HostPinned).empty());
}

// 8 layers of 100 MB, whose gradients take 100 ms each to leave in the warm-up, and 6.3 ms after it. Parameters return
// in full, 10 ms each.
TEST(OneBitAdam, StepsBecomeShorterWhereGradientsHeldThemUp) {
  constexpr std::int64_t kMs = 1'000'000;
  Scenario scenario = layers_scenario("one_bit_adam", std::int64_t{8} << 30, 8, 100'000'000, kMs, kMs, kMs);
  scenario.machine.d2h.bytes_per_s = 1e9;
  scenario.steps = 8;
  scenario.policy.options["warmup_steps"] = "4";
  const auto makespan = [](const Scenario& s) {
    Simulation simulation(s);
    simulation.run();
    std::int64_t end = 0;
    for (const auto& entry : simulation.log().entries())
      for (const Event& event : entry.batch.events) end = std::max(end, event.finished.ns);
    return end;
  };
  Scenario warm = scenario;
  warm.policy.options["warmup_steps"] = "8";
  const std::int64_t saved = makespan(warm) - makespan(scenario);
  EXPECT_GT(saved, kMs * 4 * 8 * (100 - 10 - 5)) << "of a step that ends with the last gradient";
  EXPECT_LT(saved, kMs * 4 * 8 * 100);
}

TEST(OneBitAdam, TheWarmUpIsAShareOfTheStepsUnlessItIsGiven) {
  Scenario scenario = gpt_scenario("one_bit_adam", kMiB);
  const auto warmup = [&] {
    return one_bit_of(find_policy("one_bit_adam")->make(scenario)->traits().rewrites)->warmup_steps;
  };
  scenario.steps = 1;
  EXPECT_EQ(warmup(), 1);
  scenario.steps = 300;
  EXPECT_EQ(warmup(), 45);
  scenario.policy.options["warmup_steps"] = "7";
  EXPECT_EQ(warmup(), 7);
}

TEST(OneBitAdam, WrongOptionsAreInputErrors) {
  const auto refuses = [](const std::string& name, const std::string& text, const std::string& message) {
    Scenario scenario = gpt_scenario("one_bit_adam", kMiB);
    scenario.policy.options[name] = text;
    try {
      find_policy("one_bit_adam")->make(scenario);
      ADD_FAILURE() << name << " " << text << " is taken";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), "policy." + name + ": '" + text + "' is not allowed; allowed: " + message);
    }
  };
  refuses("warmup_steps", "0", "a whole number from 1 to 1000000000");
  refuses("block", "16", "a whole number from 32 to 1048576");
  refuses("block", "33", "a multiple of 32");
  refuses("error_feedback", "maybe", "true, false");
  Scenario scenario = gpt_scenario("one_bit_adam", kMiB);
  const auto make = [&] { find_policy("one_bit_adam")->make(scenario); };
  scenario.workload.precision = DType::F16;
  EXPECT_THROW(make(), ConfigError);
  scenario.workload.precision = DType::BF16;
  scenario.optimizer.weight_decay = 0.1;
  EXPECT_NO_THROW(make());
  scenario.optimizer.name = "adam";
  EXPECT_THROW(make(), ConfigError);
  scenario.optimizer.name = "adamw";
  scenario.optimizer.state_bits = 8;
  EXPECT_THROW(make(), ConfigError);
}

}  // namespace
}  // namespace tandem::testing
