// Ways of data parallelism for real, on two and four processes: gradients in buckets, states that ranks divide, and
// that some of them do. Each is compared with plain data parallelism on as many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/scenario/ranks.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Way {
  std::string partition = "none", policy = "resident", precision = "fp32", optimizer = "adamw";
  std::int64_t devices = 2, bucket = 0, shard = 0, micro_batches = 1, stages = 1, steps = 3;
  double clip_norm = 0, learning_rate = 1e-3;
  std::string schedule = "1f1b", recompute = "none";
  std::int64_t chunks = 1;
};

std::vector<std::string> arguments_of(const Way& w) {
  return {"--partition=" + w.partition,
          "--policy=" + w.policy,
          "--precision=" + w.precision,
          "--optimizer=" + w.optimizer,
          "--devices=" + std::to_string(w.devices),
          "--bucket=" + std::to_string(w.bucket),
          "--shard=" + std::to_string(w.shard),
          "--micro=" + std::to_string(w.micro_batches),
          "--stages=" + std::to_string(w.stages),
          "--steps=" + std::to_string(w.steps),
          "--clip=" + std::to_string(w.clip_norm),
          "--rate=" + std::to_string(w.learning_rate),
          "--schedule=" + w.schedule,
          "--recompute=" + w.recompute,
          "--chunks=" + std::to_string(w.chunks)};
}

Way from_arguments() {
  return {argument("partition"),          argument("policy"),
          argument("precision"),          argument("optimizer"),
          std::stoi(argument("devices")), std::stoi(argument("bucket")),
          std::stoi(argument("shard")),   std::stoi(argument("micro")),
          std::stoi(argument("stages")),  std::stoi(argument("steps")),
          std::stod(argument("clip")),    std::stod(argument("rate")),
          argument("schedule"),           argument("recompute"),
          std::stoi(argument("chunks"))};
}

Scenario scenario_of(const Way& w) {
  Scenario s = testing::gpt_scenario(w.policy, 64 * kMiB, 2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.precision = w.precision == "fp16" ? DType::F16 : w.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.devices = w.devices;
  s.workload.micro_batches = w.micro_batches;
  s.workload.partition = w.partition;
  if (w.bucket > 0) s.workload.parallel["bucket"] = w.bucket;
  if (w.shard > 0) s.workload.parallel["shard"] = w.shard;
  s.workload.recompute = w.recompute;
  s.parallel = {.pipeline = w.stages, .chunks = w.chunks, .schedule = w.schedule};
  s.optimizer.name = w.optimizer;
  s.optimizer.clip_norm = w.clip_norm;
  s.optimizer.learning_rate = w.learning_rate;
  s.steps = static_cast<std::int32_t>(w.steps);
  s.seed = 5;
  return s;
}

// Trains on all ranks, of which this process is the leading one: what each has, by rank.
std::vector<RankBits> trained(const Way& w) {
  return train_ranks(scenario_of(w), "*DISABLED_OtherCopy*", arguments_of(w));
}

// The parameters that `parts` ranks have together, the first of which is `first`.
RankBits joined(const std::vector<RankBits>& ranks, std::size_t first, std::size_t parts) {
  RankBits all;
  for (std::size_t rank = first; rank < first + parts; ++rank)
    for (const auto& [name, values] : ranks[rank])
      if (name != "loss") all[name] += values;
  return all;
}

// Ranks that have all of a stage together stand in a row.
std::size_t parts_of(const Way& w) { return w.partition == "none" ? 1 : static_cast<std::size_t>(w.devices); }

void PrintTo(const Way& w, std::ostream* out) {
  for (const std::string& argument : arguments_of(w)) *out << argument << ' ';
}
std::string name_of(const ::testing::TestParamInfo<Way>& test) {
  const Way& w = test.param;
  return w.partition + "_" + w.policy + "_" + w.precision + "_" + std::to_string(w.devices) + "x" +
         std::to_string(w.stages) + "_micro" + std::to_string(w.micro_batches) + (w.clip_norm > 0 ? "_clipped" : "") +
         (w.bucket > 0 ? "_bucket" : "") + "_" + w.schedule + "_" + w.recompute;
}

class SameBits : public ::testing::TestWithParam<Way> {};

// Two numbers have one sum.
TEST_P(SameBits, AsPlainDataParallelism) {
  const Way w = GetParam();
  Way plain = w;
  plain.partition = "none";
  plain.bucket = 0;
  const std::vector<RankBits> ranks = trained(w), same = trained(plain);
  ASSERT_EQ(ranks.size(), same.size());
  EXPECT_NE(same[same.size() - 2].at("loss"), same.back().at("loss")) << "did they train on the same batch?";
  const std::size_t parts = parts_of(w);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto loss = [&](const std::vector<RankBits>& all) {
      return all[rank].contains("loss") ? all[rank].at("loss") : "";
    };
    EXPECT_EQ(loss(ranks), loss(same)) << rank;
  }
  for (std::size_t rank = 0; rank < ranks.size(); rank += parts)
    EXPECT_EQ(joined(ranks, rank, parts), joined(same, rank, 1)) << rank;
}

// All in one bucket; in several, with clipping, which takes norms a bucket later; under policies that offload; of a
// pipeline's stages.
INSTANTIATE_TEST_SUITE_P(Buckets, SameBits,
                         ::testing::Values(Way{.bucket = 100 * kMiB},
                                           Way{.bucket = 200'000, .micro_batches = 2, .clip_norm = 0.5},
                                           Way{.policy = "zero_offload", .precision = "bf16", .bucket = 100'000},
                                           Way{.policy = "balanced", .precision = "fp16", .bucket = 100'000},
                                           Way{.bucket = 100'000, .micro_batches = 2, .stages = 2}),
                         name_of);

// Sums of several micro-batches, too: they are taken whole.
INSTANTIATE_TEST_SUITE_P(
    Optimizer, SameBits,
    ::testing::Values(Way{.partition = "optimizer", .micro_batches = 3},
                      Way{.partition = "optimizer", .policy = "zero_offload", .precision = "bf16", .micro_batches = 2},
                      Way{.partition = "optimizer", .policy = "balanced", .precision = "fp16"}),
    name_of);

// Copies of a pipeline divide each stage's among them.
INSTANTIATE_TEST_SUITE_P(
    OptimizerOfStages, SameBits,
    ::testing::Values(
        Way{.partition = "optimizer", .micro_batches = 3, .stages = 2},
        Way{.partition = "optimizer",
            .precision = "bf16",
            .micro_batches = 2,
            .stages = 2,
            .clip_norm = 0.5,
            .schedule = "gpipe",
            .recompute = "block"},
        Way{.partition = "optimizer",
            .micro_batches = 2,
            .stages = 2,
            .clip_norm = 0.5,
            .schedule = "interleaved",
            .chunks = 2},
        Way{.partition = "optimizer", .precision = "fp16", .micro_batches = 2, .stages = 2, .schedule = "zero_bubble"},
        Way{.partition = "optimizer", .policy = "zero_offload", .precision = "bf16", .micro_batches = 2, .stages = 2},
        Way{.partition = "parameters", .stages = 2, .schedule = "hippie"}),
    name_of);

class PipelinesDivide : public ::testing::TestWithParam<Way> {};

// With gradients divided, micro-batches add up what ranks have added up: in the order in which ranks without stages do.
TEST_P(PipelinesDivide, AsRanksWithoutStagesDo) {
  const Way w = GetParam();
  Way flat = w;
  flat.stages = flat.chunks = 1;
  flat.schedule = "1f1b";
  const std::vector<RankBits> ranks = trained(w), same = trained(flat);
  RankBits all;
  for (std::size_t rank = 0; rank < ranks.size(); rank += parts_of(w)) all.merge(joined(ranks, rank, parts_of(w)));
  EXPECT_EQ(all, joined(same, 0, parts_of(w)));
  for (std::size_t copy = 1; copy <= parts_of(w); ++copy)
    EXPECT_EQ(ranks[ranks.size() - copy].at("loss"), same[same.size() - copy].at("loss")) << copy;
}

INSTANTIATE_TEST_SUITE_P(
    States, PipelinesDivide,
    ::testing::Values(
        Way{.partition = "states", .micro_batches = 3, .stages = 2, .clip_norm = 0.5},
        Way{.partition = "states", .precision = "bf16", .micro_batches = 2, .stages = 2, .schedule = "gpipe"},
        Way{.partition = "parameters", .micro_batches = 2, .stages = 2, .schedule = "interleaved", .chunks = 2},
        Way{.partition = "parameters",
            .policy = "zero_offload",
            .precision = "bf16",
            .micro_batches = 3,
            .stages = 2,
            .recompute = "block"}),
    name_of);

using Numbers = std::map<std::string, std::vector<double>>;

Numbers numbers_of(const RankBits& bits) {
  Numbers numbers;
  for (const auto& [name, text] : bits) {
    std::istringstream in(text);
    for (std::string word; in >> word;) numbers[name].push_back(std::strtod(word.c_str(), nullptr));
  }
  return numbers;
}

// Of one process, which has as many micro-batches as others have ranks.
Numbers alone(std::int64_t micro_batches, double learning_rate) {
  const Way w{
      .optimizer = "sgd", .devices = 1, .micro_batches = micro_batches, .steps = 1, .learning_rate = learning_rate};
  Training training(scenario_of(w));
  training.run();
  RankBits bits = bits_of(training);
  bits.erase("loss");
  return numbers_of(bits);
}

// Of the parameters after a step of plain gradient descent, at a learning rate of 1, on four ranks: how far two orders
// of sums may lie apart. Each sum of four has three roundings, so two lie within 6u of the sum of magnitudes, a fourth
// of which is the mean's; the step itself rounds once each. Magnitudes are those of the mean over k micro-batches,
// times k, less that of k - 1, to a few roundings of the parameters.
struct Bound {
  Numbers before, magnitudes;
  Bound() : before(alone(1, 1e-30)) {
    Numbers sums;
    for (int k = 1; k <= 4; ++k)
      for (const auto& [name, after] : alone(k, 1))
        for (std::size_t i = 0; i < after.size(); ++i) {
          std::vector<double>&so_far = sums[name], &all = magnitudes[name];
          so_far.resize(after.size()), all.resize(after.size());
          const double sum = k * (before.at(name)[i] - after[i]);
          all[i] += std::abs(sum - so_far[i]);
          so_far[i] = sum;
        }
  }
  double of(const std::string& name, std::size_t i) const {
    constexpr double kRounding = 0x1p-24;
    const double parameter = std::abs(before.at(name)[i]), sum = magnitudes.at(name)[i] + 64 * kRounding * parameter;
    return kRounding * (6 * sum / 4 + 2 * (parameter + sum));
  }
};

// Gloo's order goes by the length: of a bucket, of a gradient that is padded so that ranks divide it, and of groups of
// two.
TEST(FourRanks, AddUpInOtherOrders) {
  const Way plain{.optimizer = "sgd", .devices = 4, .steps = 1, .learning_rate = 1};
  Way bucket = plain, all = plain, states = plain, optimizer = plain;
  bucket.bucket = 100'000;
  all.partition = "optimizer";
  states.partition = "states", states.shard = 2;
  optimizer.partition = "optimizer", optimizer.shard = 2;
  const Bound bound;
  const Numbers expected = numbers_of(joined(trained(plain), 0, 1));
  for (const Way& w : {bucket, all, states, optimizer}) {
    SCOPED_TRACE(w.partition + std::to_string(w.shard));
    const std::vector<RankBits> ranks = trained(w);
    const std::size_t parts = w.partition == "none" ? 1 : w.shard > 0 ? 2 : 4;
    const RankBits first = joined(ranks, 0, parts);
    for (std::size_t rank = parts; rank < 4; rank += parts) EXPECT_EQ(joined(ranks, rank, parts), first) << rank;
    for (const auto& [name, values] : numbers_of(first)) {
      ASSERT_EQ(values.size(), expected.at(name).size()) << name;
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_LE(std::abs(values[i] - expected.at(name)[i]), bound.of(name, i)) << name << ' ' << i;
    }
  }
}

// Whatever ranks divide, all or pairs of neighbours, sums are taken in one order.
TEST(FourRanks, DivideToTheSameBits) {
  for (const std::int64_t shard : {2, 4}) {
    SCOPED_TRACE(shard);
    const Way states{
        .partition = "states", .policy = "zero_offload", .precision = "bf16", .devices = 4, .shard = shard};
    Way optimizer = states, parameters = states;
    optimizer.partition = "optimizer";
    parameters.partition = "parameters";
    const std::vector<RankBits> all = trained(states);
    EXPECT_NE(all[0].at("loss"), all[2].at("loss")) << "did they train on the same batch?";
    for (const Way& w : {optimizer, parameters}) EXPECT_EQ(trained(w), all) << w.partition;
    if (shard == 2) {
      EXPECT_EQ(joined(all, 0, 2), joined(all, 2, 2));
    }
  }
}

// The other processes of the tests above.
TEST(DataParallelPeer, DISABLED_OtherCopy) { train_as_told(scenario_of(from_arguments())); }

}  // namespace
}  // namespace tandem
