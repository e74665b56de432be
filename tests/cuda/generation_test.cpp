// Text that is generated on a GPU is the CPU's, whatever a policy moves where.
#include "runtime/prompt_data.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/runtime/generation_runs.hpp"

namespace tandem {
namespace {

class GpuGeneration : public ::testing::Test {
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU on this machine";
  }
};

// Convolutions have memory for themselves.
constexpr std::int64_t kOfConvolutions = 64 * kMiB;

Tokens on_gpu(Scenario scenario, std::set<Role>& moved, const std::vector<std::vector<std::int64_t>>& prompts = {}) {
  scenario.machine.gpu = true;
  if (scenario.workload.family == "whisper" || scenario.workload.family == "multimodal_llm")
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes += kOfConvolutions;
  std::function<std::unique_ptr<DataSource>()> data;
  if (!prompts.empty()) data = [&] { return std::make_unique<PromptData>(prompts); };
  return live(scenario, moved, gpu(), std::move(data));
}

TEST_F(GpuGeneration, IsTheCpusUnderEveryPlacement) {
  std::set<Role> moved;
  for (const Kind& kind : kinds())
    for (const std::int64_t page : {1, 4, 9}) {
      const Tokens expected = live(scenario_of(kind, page, "resident", 64 * kMiB), moved);
      ASSERT_EQ(expected.size(), 12U);
      for (const Placement& placed : placements()) {
        SCOPED_TRACE(std::string(kind.name) + " in pages of " + std::to_string(page) + " under " + placed.policy.name);
        Scenario scenario = scenario_of(kind, page, placed.policy.name, placed.device_bytes);
        scenario.policy = placed.policy;
        EXPECT_EQ(on_gpu(scenario, moved), expected);
      }
    }
}

// Each policy's are the same bits, so the same text. What rounds to 16 bits is not the CPU's.
TEST_F(GpuGeneration, IsTheSameUnderEveryPlacementIn16Bits) {
  std::set<Role> moved;
  for (const Kind& kind : kinds())
    for (const DType type : {DType::BF16, DType::F16}) {
      const auto scenario_for = [&](const Placement& placed) {
        Scenario scenario = scenario_of(kind, 4, placed.policy.name, placed.device_bytes);
        scenario.policy = placed.policy;
        scenario.workload.precision = type;
        return scenario;
      };
      const Tokens expected = on_gpu(scenario_for(placements().front()), moved);
      for (const Placement& placed : placements()) {
        if (placed.policy.options.contains("cpu_attention")) continue;  // the CPU's sums are others
        SCOPED_TRACE(std::string(kind.name) + " in " + std::string(name_of(type)) + " under " + placed.policy.name);
        EXPECT_EQ(on_gpu(scenario_for(placed), moved), expected);
      }
    }
}

// Codes of keys and values are made on the device, and read there, wherever they lie between.
TEST_F(GpuGeneration, IsTheSameUnderEveryPlacementWithCodesOfTheCache) {
  std::set<Role> moved;
  for (const Kind& kind : decoders()) {
    const Tokens expected = on_gpu(with_coded_cache(kind, placements().front()), moved);
    for (const Placement& placed : placements()) {
      SCOPED_TRACE(std::string(kind.name) + " under " + placed.policy.name);
      EXPECT_EQ(on_gpu(with_coded_cache(kind, placed), moved), expected);
    }
  }
}

TEST_F(GpuGeneration, TextsOfSeveralLengthsAreTheCpus) {
  std::set<Role> moved;
  for (const Kind& kind : decoders()) {
    const Tokens expected = live(with_lengths(scenario_of(kind, 4, "resident", 64 * kMiB)), moved);
    for (const Placement& placed : placements()) {
      SCOPED_TRACE(std::string(kind.name) + " under " + placed.policy.name);
      Scenario scenario = with_lengths(scenario_of(kind, 4, placed.policy.name, placed.device_bytes));
      scenario.policy = placed.policy;
      EXPECT_EQ(on_gpu(scenario, moved), expected);
    }
  }
}

// By FlashAttention where it can be, whose sums are others with padding: nearly all tokens are those of each text
// alone, where one of 256 would be by chance.
TEST_F(GpuGeneration, TextsOfSeveralLengthsAreNearlyThoseOfEachAloneIn16Bits) {
  std::set<Role> moved;
  int tokens = 0, alike = 0;
  std::vector<std::vector<std::int64_t>> prompts;
  for (const std::int64_t length : some_lengths())
    for (prompts.emplace_back(); static_cast<std::int64_t>(prompts.back().size()) < length;)
      prompts.back().push_back(static_cast<std::int64_t>(17 * prompts.size() + 31 * prompts.back().size()) %
                               kVocabulary);
  for (const Kind& kind : decoders())
    for (const DType type : {DType::BF16, DType::F16}) {
      Scenario scenario = scenario_of(kind, 4, "resident", 64 * kMiB);
      scenario.workload.precision = type;
      const Tokens all = on_gpu(with_lengths(scenario), moved, prompts);
      for (const std::int32_t batch : {0, 1}) {
        const auto& prompt = prompts.at(static_cast<std::size_t>(3 * batch));
        scenario.workload.batch = scenario.workload.micro_batches = 1;
        scenario.workload.generate["prompt"] = static_cast<std::int64_t>(prompt.size());
        for (const auto& [at, alone] : on_gpu(scenario, moved, {prompt})) {
          ++tokens;
          alike += all.at({at.first, batch}) == alone;
        }
      }
    }
  EXPECT_EQ(tokens, 7 * 2 * 2 * 6);
  EXPECT_GE(alike, tokens * 9 / 10);
}

TEST_F(GpuGeneration, IsTheCpusWhereLittleFits) {
  constexpr std::int64_t kLittle = 32 * kMiB + kMiB / 2;  // of which cuBLAS has 32 MiB for itself
  std::set<Role> moved;
  for (const Kind& kind : kinds())
    EXPECT_EQ(on_gpu(scenario_of(kind, 4, "on_demand", kLittle), moved),
              live(scenario_of(kind, 4, "resident", 64 * kMiB), moved))
        << kind.name;
}

}  // namespace
}  // namespace tandem
