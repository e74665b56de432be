// Rows that pad a vocabulary are no part of the network: they stay zero through every update, and a checkpoint goes
// from a run that has them to one that has none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/train.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/checked_run.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMiB = std::int64_t{1} << 20, kTokens = 257, kMultiple = 64, kRows = 320;

Scenario scenario_of(const std::string& policy, DType precision, bool tied) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB, /*layers=*/2);
  for (const Tier tier : {Tier::HostPinned, Tier::Disk})
    s.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes = 256 * kMiB;
  s.workload.keys["vocabulary"] = kTokens;
  s.workload.keys["vocabulary_multiple"] = kMultiple;
  s.workload.keys["tied_embedding"] = tied;
  s.workload.precision = precision;
  s.workload.micro_batches = 2;
  s.optimizer.weight_decay = 0.1;
  s.optimizer.clip_norm = 0.5;
  s.optimizer.initial_loss_scale = 1024;
  s.steps = 5;
  s.seed = 7;
  return s;
}

// The bytes of the tensors that persist that lie in rows that pad, and how many tensors have such.
std::pair<std::vector<std::byte>, int> padding_of(Training& training) {
  std::vector<std::byte> padding;
  int tensors = 0;
  for (TensorId id = 0; id < training.graph().tensor_count(); ++id) {
    const Tensor& tensor = training.graph().tensor(id);
    if (!tensor.persistent || tensor.layout == nullptr || tensor.type == DType::U8) continue;
    for (const Field& field : tensor.layout->fields) {
      if (field.padding_rows == 0) continue;
      ++tensors;
      const std::vector<std::byte> bytes = training.latest(id);
      const auto begin = bytes.begin() + field_offset(field, tensor.type);
      padding.insert(padding.end(), begin + field.elements() * size_of(tensor.type),
                     begin + field.padded_elements() * size_of(tensor.type));
    }
  }
  return {padding, tensors};
}

class PaddedVocabulary : public ::testing::TestWithParam<std::string> {};

TEST_P(PaddedVocabulary, StaysZero) {
  for (const DType precision : {DType::F32, DType::BF16, DType::F16})
    for (const bool tied : {true, false}) {
      if (precision == DType::F16 && GetParam() == "lsp_offload") continue;  // which does not train in it
      const Scenario scenario = scenario_of(GetParam(), precision, tied);
      TrainOptions options;
      options.poison = true;
      Training training(scenario, options);
      run_checked(training);
      const auto [padding, tensors] = padding_of(training);
      EXPECT_GE(tensors, 1);
      EXPECT_TRUE(std::all_of(padding.begin(), padding.end(), [](std::byte b) { return b == std::byte{0}; }))
          << name_of(precision) << (tied ? " tied" : "");
    }
}

std::vector<std::string> policies_of_all_kinds() {
  std::vector<std::string> names = testing::exact_policies();
  names.emplace_back("lsp_offload");
  return names;
}
INSTANTIATE_TEST_SUITE_P(Policies, PaddedVocabulary, ::testing::ValuesIn(policies_of_all_kinds()),
                         [](const auto& test) { return test.param; });

// By the bits: those of an unpadded run but for the order of sums within a product.
TEST(PaddedVocabularyOf, ItsOwnNetworkTrainsAlike) {
  for (const bool tied : {true, false}) {
    Scenario padded = scenario_of("zero_offload", DType::F32, tied), plain = padded;
    plain.workload.keys["vocabulary_multiple"] = 1;
    Training a(padded, {}), b(plain, {});
    run_checked(a), run_checked(b);
    const auto got = a.parameters(), expected = b.parameters();
    ASSERT_EQ(got.size(), expected.size());
    for (const auto& [name, numbers] : expected) {
      ASSERT_EQ(got.at(name).size(), numbers.size()) << name;
      for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(got.at(name)[i], numbers[i], 2e-4) << name << i;
    }
  }
}

TEST(PaddedVocabularyOf, GpusIn16BitsAlone) {
  const auto rows_of = [](Scenario s) {
    s.workload.keys = find_workload("gpt")->keys->small_instance();
    return network_of(s).modules.front().module->weights.front().shape.rows();
  };
  Scenario s = scenario_of("resident", DType::BF16, true);
  EXPECT_EQ(rows_of(s), kTokens);
  s.machine.gpu = true;
  EXPECT_EQ(rows_of(s), kRows);
  s.workload.precision = DType::F32;
  EXPECT_EQ(rows_of(s), kTokens);
  s.workload.precision = DType::BF16;
  s.optimizer.epsilon = 0;
  EXPECT_EQ(rows_of(s), kTokens);
  s.workload.keys["vocabulary_multiple"] = 8;
  EXPECT_THROW(network_of(s), ConfigError);
}

TEST(PaddedVocabularyOf, ACheckpointIsNotInIt) {
  std::string folder = ::testing::TempDir() + "/tandem-padded-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const std::int64_t first_multiple : {kMultiple, std::int64_t{1}}) {
    Scenario first = scenario_of("zero_offload", DType::BF16, true);
    first.workload.keys["vocabulary_multiple"] = first_multiple;
    first.checkpoint = {folder, 0, 1};
    Scenario second = first;
    second.workload.keys["vocabulary_multiple"] = first_multiple == 1 ? kMultiple : 1;
    second.steps = first.steps + 1;
    Scenario whole = first;
    whole.steps = second.steps, whole.checkpoint = {};
    Training saved(first, {});
    run_checked(saved);
    const SafetensorsFile file(complete_checkpoints(folder).back().folder + "/embedding.safetensors");
    EXPECT_NO_THROW(static_cast<void>(file.find({"embedding.wte", DType::BF16, {kTokens, 64}})));
    resume_from(second, folder, /*verify=*/true);
    Training resumed(second, {}), straight(whole, {});
    run_checked(resumed), run_checked(straight);
    const auto got = resumed.parameters();
    for (const auto& [name, numbers] : straight.parameters()) {
      ASSERT_EQ(got.at(name).size(), numbers.size()) << name;
      for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(got.at(name)[i], numbers[i], 4e-3) << name << i;
    }
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tandem
