// The least device memory in which a tiny step can run at all, and what policies that need least take (R8).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
  scenario.workload.keys["hidden"] = shape < 3 ? 64 : 32;
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

std::int64_t persistent_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).persistent) bytes += graph.tensor(id).bytes;
  return bytes;
}

// A value lives from the op that makes it to the last that reads it; what persists, always. Updates come as soon as
// they can. So much there is at once whatever the schedule, and the device holds a part of it.
std::int64_t most_alive(const Graph& graph) {
  std::vector<OpId> order, updates;
  for (OpId id = 0; id < graph.op_count(); ++id)
    (graph.op(id).phase == Phase::OptimizerStep ? updates : order).push_back(id);
  for (OpId update : updates) {
    OpId after = 0;
    for (ValueId read : graph.op(update).reads) after = std::max(after, graph.value(read).producer);
    order.insert(std::find(order.begin(), order.end(), after) + 1, update);
  }
  std::map<ValueId, std::size_t> last_read;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (ValueId read : graph.op(order[i]).reads) last_read[read] = i;
  std::int64_t alive = persistent_bytes(graph), most = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Write& write : graph.op(order[i]).writes)
      if (!graph.tensor_of(write.value).persistent && write.reuses == kNone) alive += graph.value(write.value).bytes;
    most = std::max(most, alive);
    for (const auto& [value, last] : last_read)
      if (last == i && !graph.tensor_of(value).persistent) alive -= graph.value(value).bytes;
  }
  return most;
}

struct Attempt {
  bool fits = false;
  std::int64_t least_bytes = 0;  // that a refusal says are needed
};

Attempt attempt(Scenario scenario, Tier tier, std::int64_t bytes) {
  scenario.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes = bytes;
  try {
    EXPECT_EQ(run_null(scenario).violation, "");
    return {true, 0};
  } catch (const OutOfRoom& refusal) {
    // A host that is short can make a device too small that would do beside a larger one.
    return {false, refusal.figures().tier == tier ? refusal.figures().least_bytes : 0};
  }
}

// Over every size of a tier from little to enough: no run fits in less than a refusal said that it needs.
TEST(ExactCapacity, NothingFitsInLessThanARefusalSaysIsNeeded) {
  constexpr std::int64_t kSizes = 60;
  double most_host = 0;
  int refused = 0;
  for (const char* policy : {"on_demand", "balanced", "zero_infinity"})
    for (int shape = 0; shape < kShapes; shape += 2)
      for (const Tier tier : {Tier::Device, Tier::HostPinned}) {
        Scenario scenario = shaped(policy, shape);
        const Graph step = first_step(scenario, BlockActivations{});
        const std::int64_t widest = widest_op(step), alive = most_alive(step);
        if (tier == Tier::HostPinned)
          scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = widest;
        const std::int64_t most = tier == Tier::Device ? widest * 2 : alive * 3 / 2;
        std::vector<Attempt> attempts;
        for (std::int64_t i = 1; i <= kSizes; ++i) attempts.push_back(attempt(scenario, tier, most * i / kSizes));
        ASSERT_TRUE(attempts.back().fits) << policy << ' ' << shape;
        std::int64_t smallest = most;
        for (std::int64_t i = kSizes; i >= 1; --i)
          if (attempts[static_cast<std::size_t>(i - 1)].fits) smallest = most * i / kSizes;
        for (const Attempt& a : attempts) {
          EXPECT_TRUE(a.fits || a.least_bytes <= smallest) << policy << ' ' << shape << ' ' << name_of(tier);
          refused += a.fits ? 0 : 1;
        }
        if (tier == Tier::HostPinned) {
          EXPECT_GE(smallest, alive - widest) << policy << ' ' << shape;
          const std::int64_t homes = std::max(persistent_bytes(step), alive - widest);
          most_host = std::max(most_host, static_cast<double>(smallest) / static_cast<double>(homes));
        }
      }
  EXPECT_GT(refused, 100);
  std::printf("beside the smallest device, hosts of up to %.2f times what none does without whose homes are there\n",
              most_host);
  EXPECT_LT(most_host, 1.8);
}

}  // namespace
}  // namespace tandem::testing
