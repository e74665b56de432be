// What data-parallel ranks send compressed: bytes and times of whole simulated runs, against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/formats/one_bit.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class CompressedGradients : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/8); }
};

Scenario gpt(const std::string& compress, std::int64_t devices) {
  Scenario s = gpt_scenario("resident", kGiB);
  s.workload.devices = devices;
  s.workload.parallel["compress"] = compress;
  if (compress == "one_bit") s.workload.parallel["compress_warmup"] = 1;
  return s;
}

// What the first rank's collectives have, by step and body.
using Sent = std::map<std::pair<std::int32_t, std::string>, std::int64_t>;

Sent sent_of(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph(0);
  Sent sent;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.engine != Engine::Collective) continue;
    EXPECT_EQ(graph.work_of(op).sizes.at(1), scenario.workload.devices);
    std::int64_t& bytes = sent[{op.step, graph.work_of(op).body}];
    for (const Kernel& kernel : graph.work_of(op).kernels) bytes += kernel.bytes;
    if (graph.work_of(op).body == "all_to_all") {
      EXPECT_EQ(graph.work_of(op).kernels.front().bytes, graph.value(op.writes.front().value).bytes);
    }
  }
  return sent;
}

// A block of width h has 12 h^2 + 13 h parameters, the embedding 256 h + 32 h, the head's norm 2 h.
constexpr std::int64_t kWidth = 64, kParameters = 4 * (12 * kWidth * kWidth + 13 * kWidth) + 290 * kWidth;

// An all-reduce takes twice a gradient's bytes round a ring: a reduce-scatter and an all-gather. All parts here are
// whole, so an all-to-all and an all-gather of 16-bit numbers have half of that.
TEST_F(CompressedGradients, TakeHalfTheBytesInSixteenBits) {
  for (const std::int64_t ranks : {2, 4}) {
    const Sent plain = sent_of(gpt("none", ranks));
    EXPECT_EQ(plain.at({1, "all_reduce"}), 2 * 4 * kParameters);
    for (const char* kind : {"bf16", "fp16"}) {
      const Sent sent = sent_of(gpt(kind, ranks));
      EXPECT_EQ(sent.at({1, "all_to_all"}) + sent.at({1, "all_gather"}), plain.at({1, "all_reduce"}) / 2) << kind;
      EXPECT_EQ(sent.at({1, "all_to_all"}), sent.at({1, "all_gather"}));
      EXPECT_FALSE(sent.contains({1, "all_reduce"}));
    }
  }
}

// A bit each way for each number, and a scale of 4 bytes for each block: of a bucket of n numbers, blocks are dealt out
// to ranks, the last of which may have fewer.
TEST_F(CompressedGradients, TakeABitAndAScaleAfterTheWarmUp) {
  const std::vector<std::int64_t> buckets{288 * kWidth,
                                          12 * kWidth * kWidth + 13 * kWidth,
                                          12 * kWidth * kWidth + 13 * kWidth,
                                          12 * kWidth * kWidth + 13 * kWidth,
                                          12 * kWidth * kWidth + 13 * kWidth,
                                          2 * kWidth};
  for (const std::int64_t ranks : {2, 4})
    for (const std::int64_t block : {64, 1024}) {
      Scenario s = gpt("one_bit", ranks);
      s.workload.parallel["compress_block"] = block;
      const Sent sent = sent_of(s);
      EXPECT_EQ(sent.at({0, "all_reduce"}), 2 * 4 * kParameters) << "plain Adam";
      std::int64_t bytes = 0;
      for (const std::int64_t n : buckets) {
        const std::int64_t blocks = rounded_up_quotient(n, ranks * block) * ranks;
        bytes += blocks * (4 + block / 8);
      }
      EXPECT_EQ(sent.at({1, "all_to_all"}), bytes) << ranks << ' ' << block;
      EXPECT_EQ(sent.at({2, "all_gather"}), bytes) << ranks << ' ' << block;
      EXPECT_FALSE(sent.contains({1, "all_reduce"}));
      if (block == 64 && ranks == 2) {
        EXPECT_NEAR(static_cast<double>(bytes) / (4 * kParameters), 1 / 32.0 + 1 / 64.0, 1e-4);
      }
    }
}

double step_us(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median * 1e6;
}

// One layer of 2^20 parameters, of which all passes take 100 us. Links of 10 GB/s, memory of 1 TB/s: a byte a ns.
TEST_F(CompressedGradients, TakeTheTimeOfTheirBytesOnAnIdleLink) {
  constexpr std::int64_t kElements = 1 << 20;
  for (const std::int64_t ranks : {2, 4})
    for (const bool feedback : {true, false})
      for (const char* kind : {"bf16", "one_bit"}) {
        Scenario s = layers_scenario("resident", kGiB, 1, 2 * kElements, 100 * kUs, 100 * kUs, 100 * kUs);
        s.machine.collective_latency_ns = 30 * kUs;
        s.workload.devices = ranks;
        s.workload.parallel["compress"] = kind;
        s.workload.parallel["error_feedback"] = feedback;
        if (std::string(kind) == "one_bit") s.workload.parallel["compress_warmup"] = 1;
        s.steps = 6;
        const bool signs = std::string(kind) == "one_bit";
        const double n = kElements, code = signs ? n / 8 + n / 1024 * 4 : 2 * n, p = static_cast<double>(ranks);
        const double kept = feedback ? 8 : 0, m = signs ? 4 : 0;  // bytes a number: read and written; read
        const double compress = (2 + m + kept) * n + code;
        const double mean = code + code / p + kept * n / p;
        const double decode = code + (signs ? 4 : 2) * n;
        const double link = 2 * (30e3 + code * (p - 1) / p / 10);
        EXPECT_NEAR(step_us(s), 300 + (compress / 1e3 + mean / 1e3 + decode / 1e3 + link) / 1e3, 0.02)
            << kind << ranks << feedback;
      }
}

// Eight layers of 1 MB, whose backwards take 100 us. An all-to-all or an all-gather takes 50 us in 16 bits, 3.3 in
// signs. What comes after the last backward is its layer's two and the all-gather before; beside the backward stands
// what ranks compress and decode themselves: 13 us a layer at most.
TEST_F(CompressedGradients, OverlapTheBackward) {
  Scenario s = layers_scenario("resident", kGiB, 8, 1'000'000, 100 * kUs, 100 * kUs, 10 * kUs);
  s.workload.devices = 2;
  EXPECT_NEAR(step_us(s), 800 + 100 + 8 * 100 + 80, 1);
  s.workload.parallel["compress"] = "bf16";  // which the gradients are: as many bytes
  const double passes = 800 + 800 + 80;
  EXPECT_GT(step_us(s), passes + 100);
  EXPECT_LT(step_us(s), passes + 8 * 13 + 3 * 50);
  s.workload.parallel["compress"] = "one_bit";
  s.workload.parallel["compress_warmup"] = 1;
  s.steps = 6;
  EXPECT_GT(step_us(s), passes + 2 * 3.3);
  EXPECT_LT(step_us(s), passes + 8 * 13 + 3 * 3.3);
}

TEST_F(CompressedGradients, KeepBytesInOrder) {
  int runs = 0;
  for (const char* kind : {"bf16", "fp16", "one_bit"})
    for (const std::int64_t devices : {2, 3, 4})
      for (const std::int64_t stages : {1, 2}) {
        Scenario s = gpt(kind, devices);
        s.workload.micro_batches = 2;
        s.workload.precision = devices == 3 ? DType::BF16 : DType::F32;
        s.workload.recompute = "block";
        s.workload.parallel["error_feedback"] = devices != 4;
        s.parallel.pipeline = stages;
        if (std::string(kind) != "one_bit") s.optimizer.clip_norm = 1;
        s.truth.noise = 0.3;
        Simulation simulation(s);
        for (const CheckedRank& rank : run_checked(simulation)) {
          EXPECT_EQ(rank.violation, "") << kind << devices;
          EXPECT_GT(rank.checked, 100) << kind << devices;
        }
        ++runs;
      }
  EXPECT_EQ(runs, 18);
}

TEST_F(CompressedGradients, FoldToTheSameTime) {
  for (const char* kind : {"bf16", "one_bit"})
    for (const std::int64_t stages : {1, 2}) {
      Scenario s = gpt(kind, 4 / stages);
      s.workload.micro_batches = 4;
      s.parallel.pipeline = stages;
      s.machine.collective_latency_ns = 20 * kUs;
      const double unfolded = step_us(s);
      s.parallel.fold = true;
      EXPECT_NEAR(step_us(s), unfolded, 1e-6 * unfolded) << kind << stages;
    }
}

std::string refusal(const Scenario& scenario) {
  try {
    Simulation simulation(scenario);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// What a rank keeps takes 4 bytes a parameter, and 4 for each of its part.
TEST_F(CompressedGradients, KeepFourBytesAParameterOnEachRank) {
  const auto states = [](const Scenario& s) {
    Simulation simulation(s);
    const Graph& graph = simulation.graph(1);
    simulation.run();
    std::int64_t bytes = 0;
    for (TensorId id = 0; id < graph.tensor_count(); ++id)
      if (graph.tensor(id).role == Role::OptimizerState) bytes += graph.tensor(id).bytes;
    return bytes;
  };
  const std::int64_t plain = states(gpt("none", 2));
  EXPECT_EQ(plain, 8 * kParameters);
  EXPECT_EQ(states(gpt("bf16", 2)), plain + 4 * kParameters + 2 * kParameters);
  Scenario forgets = gpt("bf16", 2);
  forgets.workload.parallel["error_feedback"] = false;
  EXPECT_EQ(states(forgets), plain);
}

TEST_F(CompressedGradients, RefuseByNameWhatTheyDoNotGoWith) {
  EXPECT_EQ(refusal(gpt("one_bit", 2)), "");
  EXPECT_EQ(refusal(gpt("one_bit", 1)), "") << "nobody to send to";
  const auto refuses = [](const char* kind, const std::string& words, void (*change)(Scenario&)) {
    Scenario s = gpt(kind, 2);
    change(s);
    const std::string text = refusal(s);
    EXPECT_NE(text.find(words), std::string::npos) << words << ": " << text;
    EXPECT_NE(text.find("; allowed: "), std::string::npos) << text;
  };
  refuses("bf16", "parallel.compress", [](Scenario& s) { s.workload.partition = "states"; });
  refuses("bf16", "parallel.compress", [](Scenario& s) { s.workload.parallel["bucket"] = std::int64_t{1000}; });
  refuses("bf16", "parallel.compress", [](Scenario& s) { s.policy.name = "zero_offload"; });
  refuses("bf16", "parallel.compress", [](Scenario& s) { s.workload.tensor = 2; });
  refuses("bf16", "parallel.compress", [](Scenario& s) { s.workload.precision = DType::F16; });
  refuses("bf16", "checkpoint.directory", [](Scenario& s) { s.checkpoint.directory = "somewhere"; });
  refuses("one_bit", "parallel.compress_block", [](Scenario& s) { s.workload.parallel["compress_block"] = 65; });
  refuses("one_bit", "optimizer.clip_norm", [](Scenario& s) { s.optimizer.clip_norm = 1; });
  refuses("one_bit", "optimizer.state_bits", [](Scenario& s) { s.optimizer.state_bits = 8; });
  refuses("one_bit", "optimizer.name", [](Scenario& s) { s.optimizer.name = "sgd"; });
  refuses("one_bit", "optimizer.masters", [](Scenario& s) {
    s.workload.precision = DType::BF16;
    s.optimizer.masters = false;
  });
}

}  // namespace
}  // namespace tandem::testing
