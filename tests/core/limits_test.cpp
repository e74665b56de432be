// Limits change the machine that is simulated, not only the one that is trained on.
#include <gtest/gtest.h>

#include "core/scenario/load.hpp"

namespace tandem {
namespace {

constexpr const char* kScenario =
    "machine: round_numbers\n"
    "workload: {family: layers, layers: 2, layer_bytes: 1MiB, forward: 1ms, backward: 1ms, optimizer: 1ms}\n"
    "policy: {name: on_demand}\n";

TEST(Limits, FewerCoresUpdateMoreSlowly) {
  const Scenario whole = parse_scenario(kScenario, "whole.yaml");
  const Scenario half = parse_scenario(kScenario, "half.yaml", {"limits.cores=4"});
  EXPECT_EQ(whole.machine.cores, 8);
  EXPECT_EQ(half.machine.cores, 4);
  EXPECT_DOUBLE_EQ(half.machine.cpu_optimizer_parameters_per_s, whole.machine.cpu_optimizer_parameters_per_s / 2);
  EXPECT_DOUBLE_EQ(half.machine.cpu_flops, whole.machine.cpu_flops / 2);
  // The text that a log's header holds gives the same machine again.
  EXPECT_DOUBLE_EQ(parse_scenario(half.text, "again.yaml").machine.cpu_flops, half.machine.cpu_flops);
}

}  // namespace
}  // namespace tandem
