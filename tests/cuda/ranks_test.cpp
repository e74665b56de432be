// Ranks on GPUs of their own, over NCCL: divided as they are, they train as ranks that divide nothing, or as one GPU.
// Each is this program again, told by flags what to do; this process looks at what they come to.
#include "core/scenario/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

struct Division {
  std::string policy = "resident", partition = "none", schedule = "1f1b", precision = "fp32", family = "gpt",
              recompute = "none", optimizer = "adamw";
  std::int64_t devices = 1, stages = 1, chunks = 1, micro_batches = 1, batch = 8, tensor = 1, steps = 3;
  double clip_norm = 0;
  std::string parallel{}, directory{};  // more keys of `parallel` and their values; where checkpoints are
  bool resumes = false;
};

std::vector<std::string> arguments_of(const Division& d) {
  return {"--policy=" + d.policy,
          "--partition=" + d.partition,
          "--schedule=" + d.schedule,
          "--precision=" + d.precision,
          "--family=" + d.family,
          "--recompute=" + d.recompute,
          "--optimizer=" + d.optimizer,
          "--devices=" + std::to_string(d.devices),
          "--stages=" + std::to_string(d.stages),
          "--chunks=" + std::to_string(d.chunks),
          "--micro=" + std::to_string(d.micro_batches),
          "--batch=" + std::to_string(d.batch),
          "--tensor=" + std::to_string(d.tensor),
          "--steps=" + std::to_string(d.steps),
          "--clip=" + std::to_string(d.clip_norm),
          "--parallel=" + d.parallel,
          "--directory=" + d.directory,
          "--resumes=" + std::to_string(int{d.resumes})};
}

Division from_arguments() {
  const auto number = [](const char* name) { return std::stoi(argument(name)); };
  return {.policy = argument("policy"),
          .partition = argument("partition"),
          .schedule = argument("schedule"),
          .precision = argument("precision"),
          .family = argument("family"),
          .recompute = argument("recompute"),
          .optimizer = argument("optimizer"),
          .devices = number("devices"),
          .stages = number("stages"),
          .chunks = number("chunks"),
          .micro_batches = number("micro"),
          .batch = number("batch"),
          .tensor = number("tensor"),
          .steps = number("steps"),
          .clip_norm = std::stod(argument("clip")),
          .parallel = argument("parallel"),
          .directory = argument("directory"),
          .resumes = number("resumes") != 0};
}

constexpr std::int64_t kHidden = 256, kSequence = 128, kLayers = 4;  // as gpt_on_gpu() has them

Scenario scenario_of(const Division& d) {
  Scenario s = gpt_on_gpu(d.policy, d.precision == "fp32" ? DType::F32 : DType::BF16);
  KeyValues& keys = s.workload.keys;
  s.workload.family = d.family;
  if (d.family != "gpt") keys = find_workload(d.family)->keys->small_instance();
  if (d.family == "llama")
    keys["layers"] = kLayers, keys["hidden"] = kHidden, keys["heads"] = 8, keys["key_heads"] = 4,
    keys["feed_forward"] = 4 * kHidden, keys["sequence"] = kSequence, keys["vocabulary"] = 250;
  if (d.family == "moe") keys["experts"] = 4, keys["vocabulary"] = 256;
  s.workload.partition = d.partition;
  s.workload.recompute = d.recompute;
  s.workload.devices = d.devices;
  s.workload.tensor = d.tensor;
  s.workload.batch = d.batch;
  s.workload.micro_batches = d.micro_batches;
  s.parallel = {.pipeline = d.stages, .chunks = d.chunks, .schedule = d.schedule};
  std::istringstream more(d.parallel);
  for (std::string key, value; std::getline(more, key, ':') && std::getline(more, value, ',');) {
    const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
    if (is_number)
      s.workload.parallel[key] = std::int64_t{std::stoll(value)};
    else
      s.workload.parallel[key] = value;
  }
  s.optimizer.name = d.optimizer;
  if (d.optimizer == "sgd") s.optimizer.learning_rate = 0.1;
  s.optimizer.clip_norm = d.clip_norm;
  s.steps = static_cast<std::int32_t>(d.steps);
  if (!d.directory.empty()) s.checkpoint = {d.directory, 1, 10};
  if (d.resumes) resume_from(s, d.directory, /*verify=*/true);
  return s;
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(std::strtod(word.c_str(), nullptr));
  return out;
}

// What each rank comes to, all of them processes of their own.
std::vector<RankBits> trained(const Division& d) {
  for (const char* of_shards : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
    ::unsetenv(of_shards);  // they have one test
  const Rank ranks = rank_count(scenario_of(d));
  std::vector<std::string> arguments = arguments_of(d);
  arguments.insert(arguments.begin(), {"--gtest_filter=*DISABLED_OneOfTheRanks*", "--gtest_also_run_disabled_tests",
                                       "--ranks=" + std::to_string(ranks)});
  RankProcesses processes(ranks, arguments, "", /*own=*/kNone);
  const std::string file = processes.meeting_file();
  processes.finish();
  std::vector<RankBits> all;
  for (Rank rank = 0; rank < ranks; ++rank) all.push_back(read(dump_path(file, rank)));
  return all;
}

// Parts that ranks have, joined; of what several have, which must be the same, one.
RankBits joined(const std::vector<RankBits>& all, bool parts) {
  RankBits bits;
  for (const RankBits& one : all)
    for (const auto& [name, values] : one) {
      if (name == "loss") continue;
      const auto [found, fresh] = bits.emplace(name, values);
      if (fresh) continue;
      if (parts) found->second += values;
      EXPECT_TRUE(parts || found->second == values) << "ranks differ in " << name;
    }
  return bits;
}

// Names what differs, and by how much: the numbers themselves are many.
void expect_same(const RankBits& is, const RankBits& should_be) {
  EXPECT_GT(should_be.size(), 4U);
  EXPECT_EQ(is.size(), should_be.size());
  for (const auto& [name, text] : should_be) {
    const auto found = is.find(name);
    ASSERT_NE(found, is.end()) << name;
    if (found->second == text) continue;
    const std::vector<double> a = numbers(found->second), b = numbers(text);
    ASSERT_EQ(a.size(), b.size()) << name;
    std::size_t differing = 0;
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      differing += a[i] != b[i];
      most = std::max(most, std::abs(a[i] - b[i]));
    }
    ADD_FAILURE() << name << ": " << differing << " of " << a.size() << " numbers differ, by " << most << " at most";
  }
}

void PrintTo(const Division& d, std::ostream* out) {
  for (const std::string& argument : arguments_of(d)) *out << argument << ' ';
}

class GpuRanks : public ::testing::TestWithParam<Division> {
  void SetUp() override {
    if (gpu_count() < 2) GTEST_SKIP() << "needs two GPUs";
  }
};

class GpuPartition : public GpuRanks {};
TEST_P(GpuPartition, TrainsAsRanksThatHaveAll) {
  Division whole = GetParam();
  whole.partition = "none";
  const auto divided = trained(GetParam()), undivided = trained(whole);
  expect_same(joined(divided, /*parts=*/true), joined(undivided, /*parts=*/false));
  for (std::size_t rank = 0; rank < divided.size(); ++rank)
    EXPECT_EQ(divided[rank].at("loss"), undivided[rank].at("loss"));
}
INSTANTIATE_TEST_SUITE_P(
    All, GpuPartition,
    ::testing::Values(
        Division{.partition = "states", .devices = 2},
        Division{.partition = "states", .precision = "bf16", .devices = 2, .clip_norm = 0.5},
        Division{.policy = "balanced", .partition = "states", .precision = "bf16", .devices = 2},
        Division{.policy = "balanced", .partition = "states", .precision = "bf16", .devices = 2, .clip_norm = 0.5},
        Division{.policy = "zero_offload", .partition = "parameters", .precision = "bf16", .devices = 2}));

class GpuPipeline : public GpuRanks {};
TEST_P(GpuPipeline, TrainsAsOneGpu) {
  Division one = GetParam();
  one.stages = one.chunks = 1;
  one.schedule = "1f1b";
  expect_same(joined(trained(GetParam()), false), joined(trained(one), false));
}
INSTANTIATE_TEST_SUITE_P(
    All, GpuPipeline,
    ::testing::Values(Division{.schedule = "naive", .stages = 2, .micro_batches = 4, .batch = 2},
                      Division{.schedule = "gpipe", .precision = "bf16", .stages = 2, .micro_batches = 4, .batch = 2},
                      Division{.schedule = "1f1b", .stages = 2, .micro_batches = 4, .batch = 2, .clip_norm = 0.5},
                      Division{.schedule = "interleaved", .stages = 2, .chunks = 2, .micro_batches = 4, .batch = 2},
                      Division{
                          .policy = "zero_offload", .schedule = "axonn", .stages = 2, .micro_batches = 5, .batch = 2}));

// Two gradients are added up in either order, and a mean of two is exact.
TEST_F(GpuRanks, TwoTrainAsOneThatAccumulates) {
  const std::vector<RankBits> two = trained({.devices = 2, .clip_norm = 0.5});
  expect_same(joined(two, false), joined(trained({.micro_batches = 2, .clip_norm = 0.5}), false));
  EXPECT_NE(two[0].at("loss"), two[1].at("loss")) << "did they both train on the same batch?";
}

// By micro-batch and step; of ranks that have tokens of the same samples, their mean.
std::vector<double> losses_of(const std::vector<RankBits>& all, bool of_samples) {
  std::vector<double> sums;
  for (const RankBits& rank : all) {
    std::istringstream in(rank.at("loss"));
    std::size_t i = 0;
    for (std::int64_t bits = 0; in >> bits; ++i) {
      if (i == sums.size()) sums.push_back(0);
      sums[i] += std::bit_cast<double>(bits) / (of_samples ? static_cast<double>(all.size()) : 1);
    }
    if (!of_samples) break;
  }
  return sums;
}

class GpuDivided : public GpuRanks {};

// As tests/runtime/tensor_ranks_test.cpp derives it: products whose sums are over all tokens of a batch at most.
TEST_P(GpuDivided, TrainsAsOneGpuButForTheOrderOfSums) {
  const Division d = GetParam();
  Division one = d;
  one.tensor = 1;
  one.parallel.clear();
  if (d.parallel.starts_with("expert")) one.parallel = "expert:1";
  constexpr double kEpsilon = std::numeric_limits<float>::epsilon() / 2;
  const double bound = 2 * kEpsilon * static_cast<double>(d.batch * kSequence * 3 * (4 * kLayers + 2));
  const bool of_samples = d.parallel.starts_with("sequence:");
  const std::vector<double> losses = losses_of(trained(d), of_samples), expected = losses_of(trained(one), false);
  ASSERT_EQ(losses.size(), expected.size());
  ASSERT_GE(losses.size(), 3U);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], bound * expected[i]) << i;
  EXPECT_NE(losses.front(), losses.back());
}
INSTANTIATE_TEST_SUITE_P(
    All, GpuDivided,
    ::testing::Values(
        Division{.optimizer = "sgd", .tensor = 2, .clip_norm = 0.05},
        Division{.family = "llama", .recompute = "block", .optimizer = "sgd", .micro_batches = 2, .tensor = 2},
        Division{.optimizer = "sgd", .tensor = 2, .parallel = "sequence_kind:megatron"},
        Division{.optimizer = "sgd", .clip_norm = 0.05, .parallel = "sequence:2"},
        Division{.family = "llama", .optimizer = "sgd", .micro_batches = 2, .parallel = "sequence:2"},
        Division{.optimizer = "sgd", .parallel = "sequence:2,sequence_kind:ring"},
        Division{
            .family = "llama", .optimizer = "sgd", .micro_batches = 2, .parallel = "sequence:2,sequence_kind:ring"},
        Division{.family = "moe", .optimizer = "sgd", .devices = 2, .batch = 3, .parallel = "expert:2"}));

class GpuDividedRepeats : public GpuRanks {};
TEST_P(GpuDividedRepeats, ToTheBit) { EXPECT_TRUE(trained(GetParam()) == trained(GetParam())); }
INSTANTIATE_TEST_SUITE_P(All, GpuDividedRepeats,
                         ::testing::Values(Division{.precision = "bf16", .tensor = 2, .clip_norm = 0.5},
                                           Division{.precision = "bf16", .parallel = "sequence:2"},
                                           Division{.precision = "bf16", .parallel = "sequence:2,sequence_kind:ring"}));

// Two gradients have one sum, whatever goes with them.
TEST_F(GpuRanks, BucketsOfGradientsAreLayersOneByOne) {
  expect_same(joined(trained({.precision = "bf16", .devices = 2, .parallel = "bucket:1000000"}), false),
              joined(trained({.precision = "bf16", .devices = 2}), false));
}

TEST_F(GpuRanks, AServerUpdatesAsItsWorkerWould) {
  const std::vector<RankBits> ranks = trained({.parallel = "servers:1"}), alone = trained({});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].at("loss"), alone[0].at("loss"));
  expect_same(ranks[0], alone[0]);
}

class GpuCompressed : public GpuRanks {};

// The kernels have the CPU's bits (kernels_test.cpp), and its means are a plain loop's (compressed_ranks_test.cpp).
TEST_P(GpuCompressed, RanksAgreeAndLearnAsPlainOnesDo) {
  Division plain = GetParam();
  plain.parallel.clear();
  const std::vector<RankBits> ranks = trained(GetParam()), expected = trained(plain);
  joined(ranks, false);
  const std::vector<double> losses = losses_of(ranks, false), should_be = losses_of(expected, false);
  ASSERT_EQ(losses.size(), should_be.size());
  EXPECT_EQ(losses.front(), should_be.front());
  EXPECT_NE(losses.back(), should_be.back()) << "is anything compressed?";
  EXPECT_LT(losses.back(), 0.9 * losses.front());
  EXPECT_NEAR(losses.back(), should_be.back(), 0.05 * should_be.back());
}
INSTANTIATE_TEST_SUITE_P(
    All, GpuCompressed,
    ::testing::Values(
        Division{.devices = 2, .steps = 12, .parallel = "compress:fp16"},
        Division{.precision = "bf16", .devices = 2, .steps = 12, .parallel = "compress:bf16"},
        Division{.devices = 2, .steps = 12, .parallel = "compress:one_bit,compress_warmup:6"},
        Division{.precision = "bf16", .devices = 2, .steps = 12, .parallel = "compress:one_bit,compress_warmup:6"}));

class GpuCheckpoints : public GpuRanks {};

TEST_P(GpuCheckpoints, GoOnToTheSameBits) {
  std::string folder = ::testing::TempDir() + "/tandem-gpu-ranks-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  Division whole = GetParam(), part = whole;
  whole.steps = 4, whole.directory = folder + "/whole";
  part.steps = 2, part.directory = folder + "/parts";
  const bool parts = whole.partition != "none";
  const RankBits straight = joined(trained(whole), parts);
  trained(part);
  part.steps = 4, part.resumes = true;
  expect_same(joined(trained(part), parts), straight);
  std::filesystem::remove_all(folder);
}
INSTANTIATE_TEST_SUITE_P(
    All, GpuCheckpoints,
    ::testing::Values(Division{.precision = "bf16", .stages = 2, .micro_batches = 2, .clip_norm = 0.5},
                      Division{.policy = "zero_offload", .stages = 2, .micro_batches = 2},
                      Division{.partition = "states", .precision = "bf16", .devices = 2},
                      Division{.policy = "zero_offload", .partition = "states", .precision = "bf16", .devices = 2}));

// A process of the tests above.
TEST(GpuRanksPeer, DISABLED_OneOfTheRanks) { train_as_told(scenario_of(from_arguments()), gpu()); }

}  // namespace
}  // namespace tandem
