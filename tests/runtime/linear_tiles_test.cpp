// A block in tiles: losses and gradients are those of the whole block of the same parameters but for the order of sums,
// and the same to the bit as autograd's of the tiles, under every policy.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <cmath>

#include "analysis/analysis.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/reference/reference.hpp"
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

Scenario scenario_of(std::int64_t tiles, const std::string& attention, const std::string& recompute) {
  Scenario s;
  s.machine = testing::round_machine(64 * kMiB);
  s.machine.cores = 2;
  s.steps = 2;
  s.seed = 11;
  WorkloadOptions& w = s.workload;
  w.family = "gpt";
  w.keys["linear_tiles"] = tiles, w.keys["attention"] = attention, w.recompute = recompute;
  if (recompute == "optimal") w.activation_bytes = kMiB;
  w.micro_batches = 2;
  w.keys["layers"] = 2, w.keys["hidden"] = 48, w.keys["heads"] = 6, w.keys["vocabulary"] = kBytes + 1,
  w.keys["sequence"] = 40, w.batch = 3;
  // An update of g / (|g| + 1): parameters then differ as gradients do.
  s.optimizer.learning_rate = s.optimizer.epsilon = 1;
  return s;
}

// A half of a block put together from its tiles, of which `begin` is the first. Rows of each tile's first map are in
// `parts` groups, such as query, key and value.
ReferenceBucket whole_half(const std::vector<ReferenceBucket>& p, std::size_t begin, std::int64_t tiles,
                           std::int64_t parts) {
  std::vector<at::Tensor> weights(static_cast<std::size_t>(parts * tiles)), biases = weights, second;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const ReferenceBucket& tile = p[begin + static_cast<std::size_t>(i)];
    const std::size_t first = i == 0 ? 2 : 0;  // after the norm
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto slot = static_cast<std::size_t>(part * tiles + i);
      weights[slot] = tile[first].tensor.chunk(parts, 0)[static_cast<std::size_t>(part)];
      biases[slot] = tile[first + 1].tensor.chunk(parts, 0)[static_cast<std::size_t>(part)];
    }
    second.push_back(tile[first + 2].tensor);
  }
  const ReferenceBucket& head = p[begin];
  const auto together = [](const at::Tensor& tensor) { return ReferenceParameter{"", {}, {}, true, tensor}; };
  return {head[0], head[1], together(at::cat(weights)), together(at::cat(biases)), together(at::cat(second, 1)),
          head[5]};
}

// All buckets of the network whose blocks are in one piece: norms first, then maps.
std::vector<ReferenceBucket> whole_blocks(const std::vector<ReferenceBucket>& p, std::int64_t tiles) {
  std::vector<ReferenceBucket> whole = {p.front()};
  const auto half = static_cast<std::size_t>(tiles);
  for (std::size_t i = 1; i + 1 < p.size(); i += 2 * half) {
    const ReferenceBucket attention = whole_half(p, i, tiles, 3), feed_forward = whole_half(p, i + half, tiles, 1);
    ReferenceBucket block(attention.begin(), attention.begin() + 2);
    block.insert(block.end(), feed_forward.begin(), feed_forward.begin() + 2);
    block.insert(block.end(), attention.begin() + 2, attention.end());
    block.insert(block.end(), feed_forward.begin() + 2, feed_forward.end());
    whole.push_back(std::move(block));
  }
  whole.push_back(p.back());
  return whole;
}

// Normal numbers: where all biases are zero and all norms one, it does not show which is whose.
std::vector<at::Tensor> fill_with_noise(std::vector<ReferenceBucket>& buckets) {
  at::manual_seed(3);
  std::vector<at::Tensor> leaves;
  for (ReferenceBucket& bucket : buckets)
    for (ReferenceParameter& p : bucket) {
      p.tensor = at::randn(p.shape).mul_(p.shape.size() > 1 ? 0.1 : 1).set_requires_grad(true);
      leaves.push_back(p.tensor);
    }
  return leaves;
}

double relative_error(const at::Tensor& got, const at::Tensor& expected) {
  return (got - expected).norm().item<double>() / expected.norm().item<double>();
}

double relative_error(const std::vector<float>& got, const float* expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(error / norm);
}

TEST(LinearTilesReference, IsThatOfTheWholeBlock) {
  make_torch_deterministic();
  set_thread_count(2);
  for (const std::int64_t tiles : {2, 3, 6}) {
    const Scenario scenario = scenario_of(tiles, "fused", "none"), untiled = scenario_of(1, "fused", "none");
    const ReferenceNetwork tiled = reference_network(scenario), whole = reference_network(untiled);
    std::vector<ReferenceBucket> parameters = tiled.buckets();
    const std::vector<at::Tensor> leaves = fill_with_noise(parameters);
    const auto batch = reference_batch(whole.network(), untiled, HashedData(kBytes), {});
    const at::Tensor got = tiled.loss(parameters, batch, {}).own;
    const at::Tensor expected = whole.loss(whole_blocks(parameters, tiles), batch, {}).own;
    EXPECT_LE(relative_error(got, expected), 1e-6);
    const auto got_gradients = torch::autograd::grad({got}, leaves);
    const auto gradients = torch::autograd::grad({expected}, leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i)
      EXPECT_LE(relative_error(got_gradients[i], gradients[i]), 1e-6) << tiles << " tiles, parameter " << i;
  }
}

using Shape = std::tuple<std::int64_t, std::string, std::string>;
class LinearTiles : public ::testing::TestWithParam<Shape> {};

TEST_P(LinearTiles, TrainAsAutogradDoesToTheBit) {
  const auto& [tiles, attention, recompute] = GetParam();
  const Scenario scenario = scenario_of(tiles, attention, recompute);
  make_torch_deterministic();
  set_thread_count(2);
  const HashedData data(kBytes);
  const ReferenceResult reference = train_reference(scenario, data, {});
  SerialInterpreter interpreter(scenario, data);
  interpreter.run();
  bool recomputes = false;
  for (OpId id = 0; id < interpreter.graph().op_count(); ++id)
    recomputes |= interpreter.graph().op(id).phase == Phase::Recompute;
  EXPECT_EQ(recomputes, recompute != "none");
  const auto& losses = interpreter.results("head.forward");
  ASSERT_EQ(losses.size(), 4u);
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_EQ(std::bit_cast<double>(losses[i]), reference.losses[i / 2][i % 2]) << i;
  std::vector<ReferenceBucket> initial = reference_network(scenario).buckets();
  fill_parameters(initial, scenario);
  const auto parameters = interpreter.parameters();
  ASSERT_EQ(parameters.size(), reference.parameters.size());
  for (const ReferenceBucket& bucket : initial)
    for (const ReferenceParameter& p : bucket) {
      const std::vector<float>& trained = reference.parameters.at(p.name);
      ASSERT_TRUE(parameters.contains(p.name)) << p.name;
      EXPECT_EQ(parameters.at(p.name), trained) << p.name;
      EXPECT_GE(relative_error(trained, p.tensor.data_ptr<float>()), 1e-5) << p.name << " has no gradient";
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTiles,
                         ::testing::Combine(::testing::Values(2, 3, 6), ::testing::Values("fused", "unfused"),
                                            ::testing::Values("none", "block", "optimal")),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) + "_" +
                                  std::get<2>(test.param);
                         });

TEST(LinearTiles, TrainIn16Bits) {
  std::map<DType, double> first_loss;
  for (const DType precision : {DType::F32, DType::BF16, DType::F16}) {
    Scenario scenario = scenario_of(3, "fused", "block");
    scenario.workload.precision = precision;
    scenario.optimizer = {};
    scenario.optimizer.initial_loss_scale = 1024;
    const HashedData data(kBytes);
    SerialInterpreter interpreter(scenario, data);
    interpreter.run();
    const auto& losses = interpreter.results("head.forward");
    first_loss[precision] = std::bit_cast<double>(losses[0]);
    EXPECT_TRUE(std::isfinite(std::bit_cast<double>(losses.back())));
  }
  EXPECT_NEAR(first_loss[DType::BF16], first_loss[DType::F32], 1e-2);
  EXPECT_NEAR(first_loss[DType::F16], first_loss[DType::F32], 1e-3);
}

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> parameters;
};

Outcome train(const std::string& policy, const std::string& recompute) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
  s.workload.precision = DType::BF16;
  s.workload.keys["linear_tiles"] = 2;
  s.workload.recompute = recompute;
  s.workload.micro_batches = 2;
  s.optimizer.clip_norm = 0.5;
  s.validation = {.every = 3, .batches = 1};
  s.steps = 6;
  s.seed = 7;
  set_thread_count(1);
  TrainOptions options;
  options.poison = true;
  Training training(s, options);
  run_checked(training);
  return {analyse(training.record()).loss, training.parameters()};
}

class LinearTilesUnderPolicies : public ::testing::TestWithParam<std::string> {};

TEST_P(LinearTilesUnderPolicies, HaveTheBitsOfResident) {
  const Outcome expected = train("resident", "none");
  for (const char* recompute : {"none", "block"}) {
    const Outcome got = train(GetParam(), recompute);
    EXPECT_EQ(got.losses, expected.losses);
    EXPECT_EQ(got.parameters, expected.parameters);
  }
  EXPECT_LT(expected.losses.back(), expected.losses.front());
}

INSTANTIATE_TEST_SUITE_P(Policies, LinearTilesUnderPolicies, ::testing::ValuesIn(testing::exact_policies()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tandem
