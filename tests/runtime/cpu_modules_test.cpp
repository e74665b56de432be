// Modules that the CPU computes beside the device: live runs train as plain LibTorch does, to the bit, under every
// policy, and such placements may be switched while training.
#include <gtest/gtest.h>

#include "tests/common/policies.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario small(const std::string& policy, const std::string& on_cpu) {
  Scenario s = testing::gpt_scenario(policy, 12 * kMiB, 2);
  s.machine = testing::round_machine(12 * kMiB, 64 * kMiB, 64 * kMiB);
  s.policy.options["cpu_modules"] = on_cpu;
  s.workload.micro_batches = 2;
  s.optimizer.clip_norm = 1;
  s.steps = 4;
  s.seed = 5;
  return s;
}

class CpuModules : public ::testing::TestWithParam<std::string> {};

TEST_P(CpuModules, TrainAsPlainLibTorch) {
  for (const char* on_cpu : {"block1", "embedding, head", "*"}) {
    SCOPED_TRACE(on_cpu);
    expect_trains_as_reference(small(GetParam(), on_cpu));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, CpuModules, ::testing::ValuesIn(testing::exact_policies()),
                         [](const auto& test) { return test.param; });

TEST(CpuModules, RecomputeIn16Bits) {
  Scenario s = small("zero_offload", "block0..1");
  s.workload.precision = DType::BF16;
  s.workload.recompute = "block";
  expect_trains_as_reference(s);
}

TEST(CpuModules, ComeAndGoWithSwitches) {
  Scenario s = small("balanced", "block0");
  s.switches = {{1, {"balanced", {}}}, {2, {"zero_offload", {{"cpu_modules", "block*, head"}}}}};
  expect_trains_as_reference(s);
}

}  // namespace
}  // namespace tandem
