// Ranks on GPUs of their own, over NCCL: divided as they are, they train as ranks that divide nothing, or as one GPU.
// Each is this program again, told by flags what to do; this process looks at what they come to.
#include "core/scenario/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

struct Division {
  std::string policy = "resident", partition = "none", schedule = "1f1b", precision = "fp32";
  std::int64_t devices = 1, stages = 1, chunks = 1, micro_batches = 1, batch = 8;
  double clip_norm = 0;
};

std::vector<std::string> arguments_of(const Division& d) {
  return {"--policy=" + d.policy,
          "--partition=" + d.partition,
          "--schedule=" + d.schedule,
          "--precision=" + d.precision,
          "--devices=" + std::to_string(d.devices),
          "--stages=" + std::to_string(d.stages),
          "--chunks=" + std::to_string(d.chunks),
          "--micro=" + std::to_string(d.micro_batches),
          "--batch=" + std::to_string(d.batch),
          "--clip=" + std::to_string(d.clip_norm)};
}

Division from_arguments() {
  return {argument("policy"),
          argument("partition"),
          argument("schedule"),
          argument("precision"),
          std::stoi(argument("devices")),
          std::stoi(argument("stages")),
          std::stoi(argument("chunks")),
          std::stoi(argument("micro")),
          std::stoi(argument("batch")),
          std::stod(argument("clip"))};
}

Scenario scenario_of(const Division& d) {
  Scenario s = gpt_on_gpu(d.policy, d.precision == "fp32" ? DType::F32 : DType::BF16);
  s.workload.partition = d.partition;
  s.workload.devices = d.devices;
  s.workload.batch = d.batch;
  s.workload.micro_batches = d.micro_batches;
  s.parallel = {.pipeline = d.stages, .chunks = d.chunks, .schedule = d.schedule};
  s.optimizer.clip_norm = d.clip_norm;
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

// A process of the tests above.
TEST(GpuRanksPeer, DISABLED_OneOfTheRanks) { train_as_told(scenario_of(from_arguments()), gpu()); }

}  // namespace
}  // namespace tandem
