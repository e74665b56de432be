// The loss over a tile of the tokens at a time: losses and gradients are those of the whole but for the order of sums,
// and the same to the bit under every policy.
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

// 120 tokens a micro-batch.
Scenario scenario_of(const std::string& family, DType precision, bool tied, std::int64_t micro_batches) {
  Scenario s;
  s.machine.cores = 2;
  s.steps = 1;
  s.seed = 11;
  WorkloadOptions& w = s.workload;
  w.family = family;
  w.precision = precision, w.keys["tied_embedding"] = tied, w.micro_batches = micro_batches;
  w.keys["layers"] = 2, w.keys["hidden"] = 48, w.keys["heads"] = 3, w.keys["vocabulary"] = kBytes + 1,
  w.keys["sequence"] = 40, w.batch = 3;
  s.validation = {.every = 1, .batches = 2};
  s.optimizer.initial_loss_scale = 1024;
  return s;
}

std::vector<double> numbers(const std::vector<std::int64_t>& bits) {
  std::vector<double> out;
  for (std::int64_t b : bits) out.push_back(std::bit_cast<double>(b));
  return out;
}

struct Results {
  std::vector<double> losses, validation;
  std::map<std::string, std::vector<float>> first_moments;  // by tensor
};

// Every body runs in a workspace of the declared size. The first moment is a tenth of the gradient.
Results run_serially(Scenario scenario, std::int64_t tiles) {
  make_torch_deterministic();
  set_thread_count(2);
  scenario.workload.keys["loss_tiles"] = tiles;
  const HashedData data(kBytes);
  SerialInterpreter interpreter(scenario, data);
  interpreter.run();
  Results results{numbers(interpreter.results("head.forward")), numbers(interpreter.results("head.evaluate")), {}};
  const Graph& graph = interpreter.graph();
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Tensor& tensor = graph.tensor_of(id);
    if (!tensor.name.ends_with("adam_m") || interpreter.bytes(id) == nullptr) continue;
    const auto* begin = reinterpret_cast<const float*>(interpreter.bytes(id));
    results.first_moments[tensor.name].assign(begin, begin + tensor.bytes / 4);
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

using Shape = std::tuple<std::string, DType, bool, std::int64_t>;
class TiledLoss : public ::testing::TestWithParam<Shape> {};

TEST_P(TiledLoss, GivesTheLossesAndGradientsOfTheWhole) {
  const auto& [family, precision, tied, micro_batches] = GetParam();
  const Scenario scenario = scenario_of(family, precision, tied, micro_batches);
  const Results whole = run_serially(scenario, 1);
  // Of rounding once to 24, 8 and 11 bits, and in other orders.
  const double rounding = precision == DType::F32 ? 5e-7 : precision == DType::BF16 ? 3e-3 : 4e-4;
  for (const std::int64_t tiles : {2, 7, 120}) {  // 60, 18 (the last 12) and 1 tokens
    const double most = rounding * std::sqrt(static_cast<double>(tiles));
    const Results tiled = run_serially(scenario, tiles);
    ASSERT_EQ(tiled.losses.size(), whole.losses.size());
    ASSERT_EQ(tiled.validation.size(), 2u);
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(tiled.losses[i], whole.losses[i], most * whole.losses[i]);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(tiled.validation[i], whole.validation[i], 2e-2);
    ASSERT_EQ(tiled.first_moments.size(), 4u);
    for (const auto& [name, expected] : whole.first_moments)
      EXPECT_LE(relative_error(tiled.first_moments.at(name), expected), most) << name << " of " << tiles << " tiles";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TiledLoss,
                         ::testing::Combine(::testing::Values("gpt", "bert"),
                                            ::testing::Values(DType::F32, DType::BF16, DType::F16), ::testing::Bool(),
                                            ::testing::Values(1, 2)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::string(name_of(std::get<1>(test.param))) +
                                  (std::get<2>(test.param) ? "_tied_" : "_untied_") +
                                  std::to_string(std::get<3>(test.param));
                         });

struct Outcome {
  std::vector<double> losses, validation;
  std::map<std::string, std::vector<float>> parameters;
};

Outcome train(const Scenario& scenario) {
  set_thread_count(1);
  TrainOptions options;
  options.poison = true;
  Training training(scenario, options);
  run_checked(training);
  const RunRecord record = training.record();
  const Analysis analysis = analyse(record);
  Outcome outcome{analysis.loss, {}, training.parameters()};
  for (const auto& evaluation : analysis.validation_loss) outcome.validation.push_back(evaluation.loss);
  return outcome;
}

Scenario small(const std::string& policy) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB, /*layers=*/3);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 64 * kMiB;
  s.workload.precision = DType::F16;
  s.workload.keys["loss_tiles"] = 3;
  s.workload.micro_batches = 2;
  s.optimizer.clip_norm = 0.5;
  s.validation = {.every = 2, .batches = 2};
  s.steps = 6;
  s.seed = 7;
  return s;
}

// A tile looks at the tokens' logits alone, too.
TEST(TiledLossOfAPaddedVocabulary, GivesTheLossesAndGradientsOfTheWhole) {
  for (const bool tied : {true, false})
    for (const char* family : {"gpt", "bert"}) {
      Scenario scenario = scenario_of(family, DType::F32, tied, 2);
      scenario.workload.keys["vocabulary_multiple"] = 64;
      const Results whole = run_serially(scenario, 1), tiled = run_serially(scenario, 7);
      for (std::size_t i = 0; i < whole.losses.size(); ++i)
        EXPECT_NEAR(tiled.losses[i], whole.losses[i], 1.5e-6 * whole.losses[i]);
      ASSERT_EQ(tiled.first_moments.size(), 4u);
      for (const auto& [name, expected] : whole.first_moments)
        EXPECT_LE(relative_error(tiled.first_moments.at(name), expected), 1.5e-6) << name;
    }
}

class TiledLossUnderPolicies : public ::testing::TestWithParam<std::string> {};

TEST_P(TiledLossUnderPolicies, HasTheBitsOfResident) {
  for (const bool tied : {true, false}) {
    Scenario scenario = small(GetParam()), plain = small("resident");
    scenario.workload.keys["tied_embedding"] = tied;
    plain.workload.keys["tied_embedding"] = tied;
    const Outcome got = train(scenario), expected = train(plain);
    EXPECT_EQ(got.losses, expected.losses);
    EXPECT_EQ(got.parameters, expected.parameters);
    ASSERT_EQ(got.validation.size(), 3u);
    EXPECT_EQ(got.validation, expected.validation);
    EXPECT_LT(got.losses.back(), got.losses.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, TiledLossUnderPolicies, ::testing::ValuesIn(testing::exact_policies()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tandem
