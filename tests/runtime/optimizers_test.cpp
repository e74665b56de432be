// Every optimizer trains as a plain LibTorch program does, to the bit in fp32; in 16 bits, with states in fewer bits
// and without masters as its formula says, element by element.
#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario scenario_of(const std::string& optimizer, const std::string& policy, DType precision) {
  Scenario s = testing::gpt_scenario(policy, 256 * kMiB);
  s.workload.keys = find_workload("gpt")->keys->small_instance();
  s.workload.batch = 3;
  s.workload.micro_batches = 2;
  s.workload.precision = precision;
  s.optimizer.name = optimizer;
  s.optimizer.weight_decay = 0.1;
  s.optimizer.clip_norm = 0.5;
  if (optimizer == "lion") s.optimizer.beta2 = 0.99;
  if (optimizer == "sgd") s.optimizer.momentum = 0.9;
  if (optimizer == "adafactor") s.optimizer.loss_scaling = false;
  s.steps = 20;
  s.seed = 7;
  return s;
}

class EveryOptimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizer, TrainsAsPlainLibTorchDoes) {
  for (const char* policy : {"resident", "balanced", "split_update", "zero_infinity"}) {
    SCOPED_TRACE(policy);
    expect_trains_as_reference(scenario_of(GetParam(), policy, DType::F32));
  }
}

TEST_P(EveryOptimizer, WithRowsThatPad) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Scenario s = scenario_of(GetParam(), "zero_offload", precision);
    s.workload.keys["vocabulary_multiple"] = 64;
    expect_trains_as_reference(s);
  }
}

TEST_P(EveryOptimizer, WithoutClippingAndDecay) {
  Scenario s = scenario_of(GetParam(), "zero_offload", DType::F32);
  s.optimizer.weight_decay = s.optimizer.clip_norm = s.optimizer.momentum = 0;
  expect_trains_as_reference(s);
}

TEST_P(EveryOptimizer, In16BitsAsItsFormulaSays) {
  for (const DType precision : {DType::BF16, DType::F16})
    for (const bool masters : {true, false})
      for (const std::int64_t bits : {32, 16, 8}) {
        Scenario s = scenario_of(GetParam(), "balanced", precision);
        s.steps = 6;  // the plain loop's products in 16 bits are slow on a CPU
        s.optimizer.masters = masters;
        s.optimizer.state_bits = bits;
        SCOPED_TRACE(std::string(name_of(precision)) + ", " + std::to_string(bits) + " bits, masters " +
                     std::to_string(masters));
        try {
          optimizer_of(s);
        } catch (const ConfigError&) {
          continue;  // it keeps no states of that kind
        }
        expect_trains_as_reference(s);
      }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const OptimizerEntry* entry : optimizers()) names.emplace_back(entry->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tandem
