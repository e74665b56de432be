// Attention with its scores in memory: losses and gradients are those of the fused kernels but for roundings, and the
// same to the bit under every policy. (tests/runtime/bodies_exact_test.cpp compares it with autograd.)
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "analysis/analysis.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/checked_run.hpp"
#include "tests/runtime/serial_interpreter.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kBytes = 256;

Scenario scenario_of(const std::string& family, DType precision, bool recomputes) {
  Scenario s;
  s.machine.cores = 2;
  s.steps = 1;
  s.seed = 11;
  WorkloadOptions& w = s.workload;
  w.family = family;
  w.precision = precision;
  w.recompute = recomputes ? "block" : "none";
  w.micro_batches = 2;
  w.keys["layers"] = 2, w.keys["hidden"] = 48, w.keys["heads"] = 3, w.keys["vocabulary"] = kBytes + 1,
  w.keys["sequence"] = 40, w.batch = 3;
  s.optimizer.initial_loss_scale = 1024;
  return s;
}

struct Results {
  std::vector<double> losses;
  std::vector<std::vector<float>> first_moments;  // by stage; a tenth of the gradient each
};

// Every body runs in a workspace of the declared size.
Results run_serially(Scenario scenario, const std::string& attention) {
  make_torch_deterministic();
  set_thread_count(2);
  scenario.workload.keys["attention"] = attention;
  const HashedData data(kBytes);
  SerialInterpreter interpreter(scenario, data);
  interpreter.run();
  Results results;
  for (const std::int64_t bits : interpreter.results("head.forward"))
    results.losses.push_back(std::bit_cast<double>(bits));
  const Graph& graph = interpreter.graph();
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Tensor& tensor = graph.tensor_of(id);
    if (!tensor.name.ends_with("adam_m") || interpreter.bytes(id) == nullptr) continue;
    const auto* begin = reinterpret_cast<const float*>(interpreter.bytes(id));
    results.first_moments.emplace_back(begin, begin + tensor.bytes / 4);
  }
  return results;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(error / norm);
}

using Shape = std::tuple<std::string, DType, bool>;
class UnfusedAttention : public ::testing::TestWithParam<Shape> {};

TEST_P(UnfusedAttention, GivesTheLossesAndGradientsOfTheFused) {
  const auto& [family, precision, recomputes] = GetParam();
  const Scenario scenario = scenario_of(family, precision, recomputes);
  const Results fused = run_serially(scenario, "fused"), unfused = run_serially(scenario, "unfused");
  ASSERT_EQ(unfused.losses.size(), 2u);
  ASSERT_EQ(unfused.first_moments.size(), fused.first_moments.size());
  // Scores and softmax are rounded to 24, 8 and 11 bits here, and stay in fp32 there.
  const double loss_bound = precision == DType::F32 ? 1e-6 : precision == DType::BF16 ? 1e-4 : 1e-5;
  const double gradient_bound = precision == DType::F32 ? 1e-6 : precision == DType::BF16 ? 1.2e-2 : 1.6e-3;
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(unfused.losses[i], fused.losses[i], loss_bound * fused.losses[i]) << i;
  for (std::size_t i = 0; i < fused.first_moments.size(); ++i)
    EXPECT_LE(relative_error(unfused.first_moments[i], fused.first_moments[i]), gradient_bound) << "stage " << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, UnfusedAttention,
                         ::testing::Combine(::testing::Values("gpt", "bert"),
                                            ::testing::Values(DType::F32, DType::BF16, DType::F16), ::testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::string(name_of(std::get<1>(test.param))) +
                                  (std::get<2>(test.param) ? "_recomputed" : "_kept");
                         });

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> parameters;
};

Outcome train(const Scenario& scenario) {
  set_thread_count(1);
  TrainOptions options;
  options.poison = true;
  Training training(scenario, options);
  run_checked(training);
  return {analyse(training.record()).loss, training.parameters()};
}

Scenario small(const std::string& policy, const std::string& attention) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
  s.workload.precision = DType::BF16;
  s.workload.keys["attention"] = attention;
  s.workload.recompute = "block";
  s.workload.checkpoint_every = 2;
  s.workload.micro_batches = 2;
  s.optimizer.clip_norm = 0.5;
  s.steps = 6;
  s.seed = 7;
  return s;
}

class UnfusedAttentionUnderPolicies : public ::testing::TestWithParam<std::string> {};

TEST_P(UnfusedAttentionUnderPolicies, HasTheBitsOfResident) {
  const Outcome got = train(small(GetParam(), "unfused")), expected = train(small("resident", "unfused"));
  EXPECT_EQ(got.losses, expected.losses);
  EXPECT_EQ(got.parameters, expected.parameters);
  const Outcome fused = train(small("resident", "fused"));
  EXPECT_NE(got.losses, fused.losses);  // it is another computation
  for (std::size_t i = 0; i < got.losses.size(); ++i) EXPECT_NEAR(got.losses[i], fused.losses[i], 0.02);
  EXPECT_LT(got.losses.back(), got.losses.front());
}

INSTANTIATE_TEST_SUITE_P(Policies, UnfusedAttentionUnderPolicies, ::testing::ValuesIn(testing::exact_policies()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tandem
