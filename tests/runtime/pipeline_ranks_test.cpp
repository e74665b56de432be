// Pipelines for real: processes that each have a piece of the network train as one process that has all of it, to the
// bit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Pipeline {
  std::string family = "gpt", policy = "resident", schedule = "1f1b", precision = "fp32", recompute = "none";
  std::string cut = "balanced";
  std::int64_t stages = 2, chunks = 1, micro_batches = 4, devices = 1;
  double clip_norm = 0;
};

std::vector<std::string> arguments_of(const Pipeline& p) {
  return {"--family=" + p.family,
          "--policy=" + p.policy,
          "--schedule=" + p.schedule,
          "--precision=" + p.precision,
          "--recompute=" + p.recompute,
          "--cut=" + p.cut,
          "--stages=" + std::to_string(p.stages),
          "--chunks=" + std::to_string(p.chunks),
          "--micro=" + std::to_string(p.micro_batches),
          "--devices=" + std::to_string(p.devices),
          "--clip=" + std::to_string(p.clip_norm)};
}

Pipeline from_arguments() {
  return {argument("family"),
          argument("policy"),
          argument("schedule"),
          argument("precision"),
          argument("recompute"),
          argument("cut"),
          std::stoi(argument("stages")),
          std::stoi(argument("chunks")),
          std::stoi(argument("micro")),
          std::stoi(argument("devices")),
          std::stod(argument("clip"))};
}

Scenario scenario_of(const Pipeline& p) {
  Scenario s = testing::gpt_scenario(p.policy, 64 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.family = p.family;
  if (p.family != "gpt") s.workload.keys = find_workload(p.family)->keys->small_instance();
  s.workload.precision = p.precision == "fp16" ? DType::F16 : p.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.recompute = p.recompute;
  s.workload.batch = 3;
  s.workload.micro_batches = p.micro_batches;
  s.workload.devices = p.devices;
  s.workload.parallel["cut"] = p.cut;
  s.parallel = {.pipeline = p.stages, .chunks = p.chunks, .schedule = p.schedule};
  s.optimizer.weight_decay = 0.1;
  s.validation.every = 2;
  s.validation.batches = 2;
  s.optimizer.clip_norm = p.clip_norm;
  if (p.policy.starts_with("hybrid")) s.policy.options["cpu_share"] = "0.5";
  if (p.policy == "hybrid_fine") s.policy.options["separation"] = "1";  // of each stage's, the CPU updates the others
  s.seed = 5;
  return s;
}

// Trains on all ranks, of which this process is the leading one. What all have, together.
RankBits trained(const Pipeline& p) {
  const Scenario scenario = scenario_of(p);
  const std::vector<RankBits> ranks = train_ranks(scenario, "*DISABLED_OtherStage*", arguments_of(p));
  RankBits bits = ranks[static_cast<std::size_t>(leading_rank(scenario))];
  for (Rank rank = 0; rank < rank_count(scenario); ++rank) {
    if (rank == leading_rank(scenario)) continue;
    RankBits others = ranks[static_cast<std::size_t>(rank)];
    EXPECT_FALSE(others.empty()) << "rank " << rank;
    others.erase("loss");
    for (const auto& [name, values] : others) {
      const auto [found, fresh] = bits.emplace(name, values);
      EXPECT_EQ(found->second, values) << "copies of a stage differ in " << name;
    }
  }
  return bits;
}

void PrintTo(const Pipeline& p, std::ostream* out) {
  for (const std::string& argument : arguments_of(p)) *out << argument << ' ';
}

class PipelineRanks : public ::testing::TestWithParam<Pipeline> {};

TEST_P(PipelineRanks, TrainAsOneDeviceDoes) {
  Pipeline one = GetParam();
  one.stages = one.chunks = 1;
  one.schedule = "1f1b";
  const RankBits divided = trained(GetParam()), whole = trained(one);
  EXPECT_GT(whole.size(), 4U);
  EXPECT_EQ(divided, whole);
}

const Pipeline kPipelines[] = {
    {.schedule = "naive"},
    {.schedule = "gpipe", .recompute = "block"},
    {.policy = "zero_offload", .schedule = "1f1b", .precision = "bf16"},
    {.policy = "zero_infinity", .schedule = "1f1b", .stages = 4},
    {.policy = "balanced", .schedule = "interleaved", .chunks = 2},
    {.policy = "on_demand", .schedule = "1f1b", .recompute = "block", .stages = 3, .micro_batches = 2},
    {.schedule = "1f1b", .stages = 2, .devices = 2},
    {.policy = "zero_offload", .schedule = "1f1b", .stages = 3, .clip_norm = 0.5},
    {.schedule = "interleaved", .precision = "fp16", .chunks = 2, .devices = 2, .clip_norm = 0.5},
    {.family = "t5", .schedule = "1f1b", .stages = 3},
    {.family = "unet", .schedule = "interleaved", .chunks = 2},
    {.family = "clip", .schedule = "gpipe", .stages = 3},
    {.family = "llama", .policy = "zero_offload", .schedule = "1f1b", .stages = 2},
    {.family = "moe", .schedule = "1f1b", .stages = 2},
    {.family = "bert", .schedule = "1f1b", .stages = 2},
    {.policy = "zero_offload", .schedule = "axonn", .stages = 3, .micro_batches = 5},
    {.schedule = "hippie", .stages = 2, .devices = 2},
    {.policy = "zero_offload", .schedule = "hippie", .precision = "bf16", .stages = 3, .clip_norm = 0.5},
    {.schedule = "zero_bubble", .stages = 2},
    {.schedule = "zero_bubble", .precision = "bf16", .stages = 4, .micro_batches = 6, .clip_norm = 0.5},
    {.schedule = "zero_bubble", .precision = "fp16", .recompute = "block", .stages = 2, .devices = 2},
    {.family = "t5", .schedule = "zero_bubble", .stages = 4},
    {.family = "clip", .schedule = "zero_bubble", .stages = 2},
    {.family = "unet", .schedule = "zero_bubble", .stages = 2},
    {.family = "moe", .policy = "zero_offload", .schedule = "zero_bubble", .stages = 2},
    {.policy = "hybrid_coarse", .schedule = "gpipe"},
    {.policy = "hybrid_coarse", .schedule = "interleaved", .recompute = "block", .chunks = 2, .clip_norm = 0.5},
    {.policy = "hybrid_fine", .schedule = "1f1b", .precision = "bf16", .stages = 3, .micro_batches = 6},
    {.family = "clip", .schedule = "gpipe", .cut = "branches", .stages = 2},
    {.family = "trimodal", .policy = "zero_offload", .schedule = "1f1b", .cut = "branches", .stages = 2},
    {.family = "trimodal", .schedule = "1f1b", .cut = "branches", .stages = 4, .clip_norm = 0.5},
    {.family = "trimodal", .schedule = "gpipe", .precision = "bf16", .cut = "branches", .stages = 2, .devices = 2},
};

INSTANTIATE_TEST_SUITE_P(All, PipelineRanks, ::testing::ValuesIn(kPipelines), [](const auto& test) {
  const Pipeline& p = test.param;
  return p.family + "_" + p.policy + "_" + p.schedule + "_" + std::to_string(p.stages) + "x" +
         std::to_string(p.devices) + "_" + p.precision + "_" + p.recompute + "_" + p.cut;
});

// The other processes of the tests above.
TEST(PipelineRanksPeer, DISABLED_OtherStage) { train_as_told(scenario_of(from_arguments())); }

}  // namespace
}  // namespace tandem
