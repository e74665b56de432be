// Hybrid training, live: the CPU's share of a batch and its updates give plain training's parameters, to the bit where
// each side has one micro-batch; with more, sums have another order.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario small(const std::string& policy, std::int64_t micro_batches) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB, 2);
  s.machine = testing::round_machine(64 * kMiB, 64 * kMiB, 0);
  s.workload.micro_batches = micro_batches;
  s.steps = 4;
  s.seed = 5;
  if (policy == "resident") return s;
  s.policy.options["cpu_share"] = "0.5";
  if (policy == "hybrid_fine") s.policy.options["separation"] = "2";  // of 4: the CPU updates a block and the head
  return s;
}

struct Ran {
  std::vector<double> losses;
  std::set<std::int32_t> on_cpu;       // micro-batches
  std::set<std::int32_t> cpu_updates;  // layers
};

Ran run(const Scenario& scenario) {
  Training training(scenario);
  run_checked(training);
  Ran ran{losses_of(training), {}, {}};
  for (const auto& entry : training.log().entries())
    for (const Command& command : entry.commands) {
      if (command.kind != CommandKind::Run) continue;
      const Op& op = training.graph().op(command.op);
      if (command.lane.kind() == Engine::CpuCompute) ran.on_cpu.insert(op.micro_batch);
      if (command.lane.kind() == Engine::CpuOptimizer) ran.cpu_updates.insert(op.layer);
    }
  return ran;
}

class Hybrid : public ::testing::TestWithParam<std::string> {};

TEST_P(Hybrid, OneMicroBatchASideTrainsAsPlainLibTorch) {
  for (const DType precision : {DType::F32, DType::BF16})
    for (const double clip : {0.0, 0.5}) {
      Scenario s = small(GetParam(), 2);
      s.workload.precision = precision;
      s.optimizer.clip_norm = clip;
      expect_trains_as_reference(s);
    }
}

TEST_P(Hybrid, TheCpuHasItsShareOfTheBatchAndOfTheUpdates) {
  const Ran ran = run(small(GetParam(), 4));
  EXPECT_EQ(ran.on_cpu, (std::set<std::int32_t>{2, 3}));
  EXPECT_EQ(ran.cpu_updates, GetParam() == "hybrid_fine" ? (std::set<std::int32_t>{2, 3}) : std::set<std::int32_t>{});
}

// Four gradients added in two halves: a rounding of each sum, which Adam makes of at most its step.
TEST_P(Hybrid, SumsOfSeveralMicroBatchesDifferInRoundingsAlone) {
  const std::vector<double> plain = run(small("resident", 4)).losses, shared = run(small(GetParam(), 4)).losses;
  ASSERT_EQ(plain.size(), shared.size());
  ASSERT_EQ(plain.size(), 16U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(plain[i], shared[i]) << "before the first update";
  for (std::size_t i = 4; i < plain.size(); ++i) EXPECT_NEAR(plain[i], shared[i], 1e-4) << i;
  EXPECT_EQ(run(small(GetParam(), 4)).losses, shared) << "in the same order each time";
}

INSTANTIATE_TEST_SUITE_P(Policies, Hybrid, ::testing::Values("hybrid_coarse", "hybrid_fine"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tandem
