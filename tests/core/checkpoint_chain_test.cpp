// The choice of what recomputes is the best of all that a step graph expresses, and what is built from it fits.
#include "core/transforms/recompute/checkpoint_chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/errors.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using Chain = std::vector<ChainStage>;
using Segments = std::vector<std::int32_t>;

std::int64_t gradient_into(const Chain& chain, std::size_t i) { return i > 0 ? chain[i - 1].output_bytes : 0; }

// Plays a step: what is held goes up and down as stages go forward and backward.
std::int64_t played_peak(const Chain& chain, const Segments& segment) {
  std::int64_t held = 0, peak = 0;
  const auto has = [&](std::int64_t more) { peak = std::max(peak, held + more); };
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const ChainStage& s = chain[i];
    const bool keeps = segment[i] == kNone, begins = segment[i] == static_cast<std::int32_t>(i);
    if (keeps || begins) held += s.input_bytes;
    if (keeps) held += s.saved_bytes;
    has((keeps || begins ? 0 : s.input_bytes) + s.output_bytes + (keeps ? s.forward_workspace : s.light_workspace));
  }
  for (std::size_t i = chain.size(); i-- > 0;) {
    const ChainStage& s = chain[i];
    const bool last = segment[i] != kNone && (i + 1 == chain.size() || segment[i + 1] != segment[i]);
    const auto first = static_cast<std::size_t>(last ? segment[i] : 0);
    for (std::size_t j = first; last && j <= i; ++j) {
      held += chain[j].saved_bytes + (j > first ? chain[j].input_bytes : 0);
      has((j < i ? chain[j].output_bytes : 0) + chain[j].forward_workspace + s.output_bytes);
    }
    has(s.output_bytes + gradient_into(chain, i) + s.backward_workspace);
    held -= s.saved_bytes + s.input_bytes;
  }
  EXPECT_EQ(held, 0);
  return peak;
}

std::int64_t recompute_ns(const Chain& chain, const Segments& segment) {
  std::int64_t ns = 0;
  for (std::size_t i = 0; i < chain.size(); ++i)
    if (segment[i] != kNone) ns += chain[i].forward_ns;
  return ns;
}

// Calls `each` for every choice for the stages from the given one on: to keep, to begin a segment, or to go on with
// one.
template <typename F>
void for_all(const Chain& chain, Segments& segment, std::size_t stage, F&& each) {
  if (stage == chain.size()) return each();
  const auto set = [&](std::int32_t to) {
    segment[stage] = to;
    for_all(chain, segment, stage + 1, each);
  };
  set(kNone);
  if (!chain[stage].recomputable) return;
  set(static_cast<std::int32_t>(stage));
  if (stage > 0 && segment[stage - 1] != kNone) set(segment[stage - 1]);
}

Chain random_chain(std::mt19937& random) {
  Chain chain(2 + random() % 6);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const auto up_to = [&](unsigned most) { return static_cast<std::int64_t>(random() % (most + 1)); };
    ChainStage& s = chain[i];
    s.recomputable = random() % 8 > 0;
    s.forward_ns = 1 + up_to(9);
    s.input_bytes = i > 0 ? chain[i - 1].output_bytes : 0;
    s.saved_bytes = up_to(20);
    s.output_bytes = 1 + up_to(4);
    s.forward_workspace = up_to(3), s.light_workspace = up_to(3), s.backward_workspace = up_to(5);
  }
  return chain;
}

TEST(CheckpointChain, NoChoiceRecomputesLessInTheSameMemory) {
  std::mt19937 random(3);
  int chosen = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Chain chain = random_chain(random);
    Segments segment(chain.size(), kNone);
    const std::int64_t all = played_peak(chain, segment);
    std::int64_t least_peak = all;
    for_all(chain, segment, 0, [&] { least_peak = std::min(least_peak, played_peak(chain, segment)); });
    EXPECT_EQ(least_budget(chain), least_peak);
    EXPECT_FALSE(optimal_checkpoints(chain, least_peak - 1));
    EXPECT_EQ(optimal_checkpoints(chain, all)->recompute_ns, 0);
    const std::int64_t budget = least_peak + static_cast<std::int64_t>(random() % (all - least_peak + 1));
    std::int64_t least_ns = recompute_ns(chain, Segments(chain.size(), 0));
    for_all(chain, segment, 0, [&] {
      if (played_peak(chain, segment) <= budget) least_ns = std::min(least_ns, recompute_ns(chain, segment));
    });
    const auto found = optimal_checkpoints(chain, budget);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->recompute_ns, least_ns);
    EXPECT_EQ(recompute_ns(chain, found->segment), least_ns);
    EXPECT_LE(played_peak(chain, found->segment), budget);
    chosen += least_ns > 0;
  }
  EXPECT_GT(chosen, 100);
}

// Not every state can be kept of so deep a chain. Recomputing the first stages one by one is what it must be as good
// as.
TEST(CheckpointChain, DeepOnesAreNearTheBest) {
  ChainStage block{.recomputable = true, .forward_ns = 10, .input_bytes = 2, .saved_bytes = 30, .output_bytes = 2};
  constexpr std::int64_t kBlocks = testing::kSanitized ? 500 : 2000;
  const Chain chain(kBlocks, block);
  for (const std::int64_t budget : {3 * kBlocks, 10 * kBlocks, 25 * kBlocks}) {
    const auto found = optimal_checkpoints(chain, budget);
    ASSERT_TRUE(found);
    EXPECT_LE(played_peak(chain, found->segment), budget);
    Segments one_by_one(chain.size(), kNone);
    for (std::size_t i = 0; played_peak(chain, one_by_one) > budget; ++i) one_by_one[i] = static_cast<std::int32_t>(i);
    EXPECT_LE(found->recompute_ns, recompute_ns(chain, one_by_one) * 101 / 100);
  }
}

// Of equal stages, all states: by stages decided and recomputed, the least that is held. -1: none fits.
std::int64_t fewest_recomputed(const ChainStage& block, std::size_t stages, std::int64_t budget) {
  // Behind a stage that holds nothing and gives what they read.
  const auto peak = [&](std::size_t count, std::int32_t segment) {
    Chain chain(count + 1, block);
    chain.front() = {.recomputable = true, .output_bytes = block.output_bytes};
    Segments choice(count + 1, segment);
    choice.front() = kNone;
    return played_peak(chain, choice);
  };
  std::vector<std::int64_t> segment_peaks{0};
  while (segment_peaks.size() <= stages && segment_peaks.back() <= budget)
    segment_peaks.push_back(peak(segment_peaks.size(), 1));
  const std::int64_t kept_peak = peak(1, kNone), none = budget + 1;
  std::vector<std::vector<std::int64_t>> held(stages + 1, std::vector<std::int64_t>(stages + 1, none));
  held[0][0] = 0;
  for (std::size_t i = 0; i < stages; ++i)
    for (std::size_t r = 0; r <= i; ++r) {
      const std::int64_t now = held[i][r];
      const auto improve = [&](std::size_t to, std::size_t recomputed, std::int64_t more) {
        held[to][recomputed] = std::min(held[to][recomputed], now + more);
      };
      if (now + kept_peak <= budget) improve(i + 1, r, block.input_bytes + block.saved_bytes);
      for (std::size_t l = 1; l < segment_peaks.size() && i + l <= stages && now + segment_peaks[l] <= budget; ++l)
        improve(i + l, r + l, block.input_bytes);
    }
  for (std::size_t r = 0; r <= stages; ++r)
    if (held[stages][r] < none) return static_cast<std::int64_t>(r);
  return -1;
}

// All states are kept of 600 equal stages.
TEST(CheckpointChain, SixHundredEqualStagesAreExactAndMoreNear) {
  const ChainStage block{
      .recomputable = true, .forward_ns = 10, .input_bytes = 2, .saved_bytes = 30, .output_bytes = 2};
  ASSERT_EQ(fewest_recomputed(block, 5, 1'000), 0);
  for (const std::size_t stages : {std::size_t{60}, std::size_t{600}, std::size_t{1'000}})
    for (const std::int64_t budget : {1'800, 4'000, 9'000}) {
      if (stages >= 600 && budget > 4'000) continue;  // takes seconds
      const auto found = optimal_checkpoints(Chain(stages, block), budget);
      const std::int64_t fewest = fewest_recomputed(block, stages, budget);
      ASSERT_EQ(found.has_value(), fewest >= 0) << stages << ' ' << budget;
      if (!found) continue;
      EXPECT_GE(found->recompute_ns, fewest * block.forward_ns) << stages << ' ' << budget;
      EXPECT_LE(static_cast<double>(found->recompute_ns),
                static_cast<double>(fewest * block.forward_ns) * (stages <= 600 ? 1 : 1.01))
          << stages << ' ' << budget;
    }
}

Graph step_with(std::int64_t activation_bytes, const char* recompute = "optimal") {
  Scenario scenario = testing::gpt_scenario("resident", std::int64_t{1} << 30, 12);
  scenario.workload.recompute = recompute;
  scenario.workload.activation_bytes = activation_bytes;
  scenario.workload.batch = 16;
  scenario.workload.micro_batches = 2;
  Graph graph;
  const auto source = find_workload("gpt")->make(scenario, {});
  source->prologue(graph);
  source->append_step(graph, 0);
  return graph;
}

std::int64_t recomputed(const Graph& graph, std::int32_t micro_batch = 0) {
  std::int64_t blocks = 0;
  for (OpId id = 0; id < graph.op_count(); ++id)
    blocks += graph.op(id).phase == Phase::Recompute && graph.op(id).micro_batch == micro_batch;
  return blocks;
}

std::int64_t peak(const Graph& graph) {
  const auto bytes = non_model_bytes(graph, {});
  return *std::max_element(bytes.begin(), bytes.end());
}

// By the estimate of a step's memory, which follows the graph op by op.
TEST(CheckpointChain, WhatIsBuiltFitsInTheGivenBytes) {
  const std::int64_t all = peak(step_with(0, "none")), by_block = peak(step_with(0, "block"));
  EXPECT_EQ(recomputed(step_with(2 * all)), 0);
  std::int64_t before = 0, differ = 0;
  for (std::int64_t budget = 2 * all; budget > by_block; budget -= all / 16) {
    const Graph graph = step_with(budget);
    EXPECT_LE(peak(graph), budget);
    EXPECT_GE(recomputed(graph), before);
    differ += recomputed(graph) > before;
    before = recomputed(graph);
  }
  EXPECT_GT(differ, 4);
}

// torchgpipe's: what the backward that comes next reads is kept.
TEST(RecomputeExceptLast, TheLastMicroBatchKeepsAll) {
  const Graph all = step_with(0, "block"), but_last = step_with(0, "except_last");
  EXPECT_EQ(recomputed(all, 0), 12);
  EXPECT_EQ(recomputed(all, 1), 12);
  EXPECT_EQ(recomputed(but_last, 0), 12);
  EXPECT_EQ(recomputed(but_last, 1), 0);
  EXPECT_EQ(peak(but_last), peak(step_with(0, "none"))) << "one micro-batch after another";
}

// Longer segments keep fewer inputs.
TEST(CheckpointChain, GoesBelowWhatBlocksAloneTake) {
  const std::int64_t by_block = peak(step_with(0, "block"));
  const Graph graph = step_with(by_block + (1 << 20));
  EXPECT_LT(recomputed(graph), 12) << "the last blocks keep theirs";
  EXPECT_THROW(step_with(1000), ConfigError);
}

}  // namespace
}  // namespace tandem
