// The least device memory in which a tiny step can run at all, and what policies that need least take (R8).
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/errors.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/run/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kBlock = 512;  // what the device's memory is given out in

std::int64_t rounded(std::int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

// No schedule runs an op on the device without its operands and its workspace there: the widest op that can run nowhere
// else and in no parts.
std::int64_t widest_op(const Graph& graph) {
  std::int64_t widest = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.engine != Engine::Compute || op.divisible || op.engines != engine_bit(Engine::Compute)) continue;
    std::int64_t bytes = rounded(op.workspace_bytes);
    std::vector<ValueId> operands(op.reads.begin(), op.reads.end());
    for (const Write& write : op.writes)
      if (write.reuses == kNone) operands.push_back(write.value);
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    for (ValueId value : operands) bytes += rounded(graph.value(value).bytes);
    widest = std::max(widest, bytes);
  }
  return widest;
}

bool fits(Scenario scenario, std::int64_t device_bytes) {
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = device_bytes;
  try {
    EXPECT_EQ(run_null(scenario).violation, "");
    return true;
  } catch (const DoesNotFit&) {
    return false;
  }
}

// Small models of several forms.
Scenario shaped(const std::string& policy, int shape) {
  Scenario scenario = gpt_scenario(policy, std::int64_t{1} << 30, 1 + shape % 3);
  scenario.workload.hidden = shape < 3 ? 64 : 32;
  scenario.workload.precision = shape % 2 ? DType::BF16 : DType::F32;
  scenario.workload.micro_batches = 1 + shape % 2;
  scenario.workload.recompute = shape == 4 ? "block" : "none";
  if (policy == "on_demand") scenario.policy.options["optimizer"] = "cpu";
  return scenario;
}
constexpr int kShapes = 6;

// Where the host has room for all else, they refuse no device that any schedule could do with: to the block.
TEST(ExactCapacity, OfTheDeviceIsWhatTheWidestOpTakes) {
  for (const char* policy : {"on_demand", "balanced", "zero_offload", "zero_infinity", "l2l"})
    for (int shape = 0; shape < kShapes; ++shape) {
      const Scenario scenario = shaped(policy, shape);
      const std::int64_t widest = widest_op(first_step(scenario, BlockActivations{}));
      EXPECT_FALSE(fits(scenario, widest - kBlock)) << policy << ' ' << shape;
      EXPECT_TRUE(fits(scenario, widest)) << policy << ' ' << shape;
    }
}

}  // namespace
}  // namespace tandem::testing
