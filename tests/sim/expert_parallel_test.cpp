// Experts that ranks divide: tokens that they send each other, whose gradients are added up, and by whom.
#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.hpp"
#include "sim/simgrid_platform.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/divided_samples.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
// Of a layer: 8 experts of 3 products of 64 by 96, each with room for 64 tokens * 2 choices * 1.25 / 8 = 20 of them.
constexpr std::int64_t kLayers = 4, kExperts = 8, kHidden = 64, kWidth = 96, kRoom = 20;

class ExpertParallel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/16); }
};

Scenario moe(std::int64_t copies, std::int64_t ranks, double imbalance = 1) {
  Scenario s = gpt_scenario("resident", kGiB, kLayers);
  s.workload.family = "moe";
  s.workload.keys["experts"] = kExperts;
  s.workload.keys["feed_forward"] = kWidth;
  s.workload.precision = DType::BF16;
  s.workload.devices = copies;
  if (ranks > 1) s.workload.parallel["expert"] = ranks;
  if (imbalance != 1) s.workload.parallel["expert_imbalance"] = imbalance;
  return s;
}

// A rank's slots go there and back, forward, and gradients of both backward: 4 values of [experts * room, hidden] a
// layer, however many ranks there are.
TEST_F(ExpertParallel, SendsSlotsThereAndBack) {
  const std::int64_t bytes = kLayers * 2 * kExperts * kRoom * kHidden * 2;
  for (const std::int64_t ranks : {2, 4}) {
    const Exchanged e = exchanged_of(moe(4, ranks));
    EXPECT_EQ(e.bytes_of("forward", "all_to_all"), bytes) << ranks;
    EXPECT_EQ(e.bytes_of("backward", "all_to_all"), bytes) << ranks;
    EXPECT_EQ(e.ranks_of("forward"), ranks);
  }
}

// The same products in all, and an Nth of the experts on each rank; what is no expert's is whole.
TEST_F(ExpertParallel, DividesExpertsAlone) {
  const std::int64_t experts = kLayers * kExperts * 3 * kHidden * kWidth * 2;
  const Exchanged whole = exchanged_of(moe(4, 1));
  for (const std::int64_t ranks : {2, 4}) {
    const Exchanged divided = exchanged_of(moe(4, ranks));
    EXPECT_EQ(divided.flops, whole.flops) << ranks;
    EXPECT_EQ(divided.parameter_bytes, whole.parameter_bytes - experts + experts / ranks) << ranks;
  }
}

// Of each expert two ranks have half of the columns, and make summands of what it makes; all route all tokens.
TEST_F(ExpertParallel, DividesColumnsOfExperts) {
  const std::int64_t experts = kLayers * kExperts * 3 * kHidden * kWidth * 2, tokens = 2 * 32;
  const std::int64_t router = kLayers * 3 * 2 * tokens * kHidden * kExperts * 3;  // forward and backward of 3 steps
  Scenario s = moe(1, 1);
  const Exchanged whole = exchanged_of(s);
  s.workload.tensor = 2;
  const Exchanged columns = exchanged_of(s);
  EXPECT_EQ(columns.flops, whole.flops + router);
  EXPECT_LT(columns.parameter_bytes, whole.parameter_bytes - experts / 2);
  EXPECT_EQ(columns.bytes_of("forward", "all_to_all"), 0);

  const Exchanged both = exchanged_of([&] {
    Scenario of_both = moe(4, 2);
    of_both.workload.tensor = 2;
    return of_both;
  }());
  EXPECT_EQ(both.flops, 4 * columns.flops);
  EXPECT_EQ(both.parameter_bytes, columns.parameter_bytes - experts / 4);
  EXPECT_EQ(both.bytes_of("forward", "all_to_all"), kLayers * 2 * kExperts * kRoom * kHidden * 2);
  EXPECT_EQ(both.bytes_of("forward", "all_reduce_sum"), columns.bytes_of("forward", "all_reduce_sum"));
}

// Experts' gradients among ranks with the same ones: none where each has its own. The others' among all.
TEST_F(ExpertParallel, AddsUpGradientsOfExpertsApart) {
  const std::int64_t experts = kLayers * kExperts * 3 * kHidden * kWidth * 2;
  const Exchanged whole = exchanged_of(moe(4, 1)), two = exchanged_of(moe(4, 2)), four = exchanged_of(moe(4, 4));
  const std::int64_t others = whole.parameter_bytes - experts;
  EXPECT_EQ(whole.bytes_of("reduce", "all_reduce"), others + experts);
  EXPECT_EQ(two.bytes_of("reduce", "all_reduce"), others + experts / 2);
  EXPECT_EQ(four.bytes_of("reduce", "all_reduce"), others);
}

// ZeRO of each kind of bucket among those that have it: of four copies, experts in two halves are each on two.
TEST_F(ExpertParallel, DividesStatesAmongThoseThatHaveThem) {
  const std::int64_t experts = kLayers * kExperts * 3 * kHidden * kWidth * 2;
  const std::int64_t others = exchanged_of(moe(4, 1)).parameter_bytes - experts;
  for (const std::int64_t ranks : {2, 4})
    for (const char* partition : {"optimizer", "states", "parameters"}) {
      SCOPED_TRACE(std::string(partition) + " " + std::to_string(ranks));
      Scenario s = moe(4, ranks);
      s.workload.partition = partition;
      const Exchanged e = exchanged_of(s);
      // The head's bucket is padded, so that four equal parts begin where a field may.
      constexpr std::int64_t kPadding = 128;
      EXPECT_EQ(e.parameter_bytes, (others + kPadding) / 4 + experts / 4);
      EXPECT_EQ(e.bytes_of("reduce", "reduce_scatter"), others + kPadding + (ranks == 4 ? 0 : experts / ranks));
      EXPECT_EQ(e.bytes_of("reduce", "all_reduce"), 0);
    }
}

// Each rank has its own experts' norm, which those that divide them add up; nobody adds others'.
TEST_F(ExpertParallel, ClipsByTheNormOfAllExperts) {
  Scenario clips = moe(4, 2), undivided = moe(4, 1);
  clips.optimizer.clip_norm = undivided.optimizer.clip_norm = 1;
  EXPECT_GT(exchanged_of(clips).bytes_of("reduce", "all_reduce_sum"), 0);
  EXPECT_EQ(exchanged_of(undivided).bytes_of("reduce", "all_reduce_sum"), 0);
}

// The busiest rank gets twice the mean: what is sent, and what it multiplies.
TEST_F(ExpertParallel, AllWaitForTheBusiest) {
  const Exchanged even = exchanged_of(moe(2, 2)), twice = exchanged_of(moe(2, 2, 2));
  EXPECT_EQ(twice.bytes_of("forward", "all_to_all"), 2 * even.bytes_of("forward", "all_to_all"));
  // Forward and backward of 3 products of all slots, on each of 2 ranks.
  const std::int64_t products = 3 * kLayers * 3 * 2 * kExperts * kRoom * kHidden * kWidth * 2 * 3;  // of 3 steps
  EXPECT_EQ(twice.flops - even.flops, products);
  EXPECT_GT(twice.step_s, even.step_s);
}

TEST_F(ExpertParallel, Composes) {
  for (const char* with : {"pipeline", "recompute", "micro_batches", "fold"}) expect_composes(moe(4, 2), with);
}

TEST_F(ExpertParallel, ComposesWithColumnsInAPipeline) {
  Scenario s = moe(2, 2);
  s.workload.tensor = 2, s.parallel.pipeline = 2, s.workload.micro_batches = 4, s.workload.recompute = "block";
  Scenario whole = s;
  whole.workload.parallel = {};
  const Exchanged divided = exchanged_of(s);
  EXPECT_EQ(divided.flops, exchanged_of(whole).flops);
  s.parallel.fold = true;
  EXPECT_NEAR(exchanged_of(s).step_s, divided.step_s, 1e-6 * divided.step_s);
}

TEST_F(ExpertParallel, RefusesWhatItDoesNotDivide) {
  EXPECT_EQ(refusal(moe(3, 2)),
            "parallel.expert: 2 does not divide the 3 ranks that train on samples of their own; allowed: 1, or a "
            "divisor of parallel.data");
  EXPECT_EQ(refusal(moe(3, 3)),
            "parallel.expert: 3 ranks do not divide 8 experts evenly; allowed: 1, or a divisor of workload.experts");
  Scenario gpt = moe(2, 2);
  gpt.workload.family = "gpt";
  EXPECT_EQ(refusal(gpt), "parallel.expert: gpt has no mixture of experts; allowed: 1, or workload.family: moe");
  EXPECT_EQ(refusal(moe(2, 1, 2)),
            "parallel.expert_imbalance: one rank has all experts; allowed: 1, or parallel.expert of 2 or more");
  Scenario neighbours = moe(4, 2);
  neighbours.workload.partition = "states", neighbours.workload.parallel["shard"] = 2;
  EXPECT_NE(refusal(neighbours).find("no shard"), std::string::npos);
}

}  // namespace
}  // namespace tandem::testing
