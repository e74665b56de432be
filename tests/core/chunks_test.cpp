// A step by chunks: its time by hand, and the layout that is chosen for it.
#include "core/policies/protrain/chunks.hpp"

#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "core/policies/protrain/chunk_search.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using testing::gpt_scenario;
using testing::run_null;

// Ten layers of forward 10 and backward 20.
std::vector<LayerTimes> ten(LayerTimes times) {
  times.forward_ns = 10;
  times.backward_ns = 20;
  return std::vector<LayerTimes>(10, times);
}

constexpr StepShape kOnePass{1, false};

TEST(Chunks, PersistentOnesComputeAndUpdateOnTheDevice) {
  const auto layers =
      ten({.gradient_copy_ns = 1000, .cpu_update_ns = 1000, .device_update_ns = 5, .parameter_copy_ns = 1000});
  EXPECT_EQ(chunked_step_ns(layers, kOnePass, {10, 0}), 10 * (10 + 20 + 5));
  EXPECT_EQ(chunked_step_ns(layers, {3, false}, {10, 1}), 3 * 10 * (10 + 20) + 10 * 5);
  EXPECT_EQ(chunked_step_ns(layers, {800, false}, {10, 1}), 800 * 10 * (10 + 20) + 10 * 5 / 200 * 200);
}

TEST(Chunks, CopiesHideBehindTheLayersBefore) {
  // The first parameter comes while nothing computes; the others behind the layers before them.
  EXPECT_EQ(chunked_step_ns(ten({.parameter_copy_ns = 10}), kOnePass, {0, 2}), 10 + 10 * 30);
  // Longer ones hold up the forward: the last comes after 10 of them. The backward hides them.
  EXPECT_EQ(chunked_step_ns(ten({.parameter_copy_ns = 15}), kOnePass, {0, 2}), 10 * 15 + 10 + 10 * 20);
  // All stay from the forward.
  EXPECT_EQ(chunked_step_ns(ten({.parameter_copy_ns = 100}), kOnePass, {0, 10}), 10 * 100 + 10 + 10 * 20);
  // Five stay. The first of the others has come when the layer whose buffer it takes is 100 past; then each takes 100.
  EXPECT_EQ(chunked_step_ns(ten({.parameter_copy_ns = 100}), kOnePass, {0, 5}), 10 * 100 + 10 + 20 + 5 * 100 + 20);
  // One buffer: each waits until the layer before is done. The layer at the turn is there.
  EXPECT_EQ(chunked_step_ns(ten({.parameter_copy_ns = 15}), kOnePass, {0, 1}), 19 * 15 + 10 * 30);
  // Behind four persistent ones two are there in time; the other four each wait for a buffer.
  EXPECT_EQ(chunked_step_ns(ten({.parameter_copy_ns = 15}), kOnePass, {4, 2}), 5 * 10 + 4 * 15 + 10 + 10 * 20);
}

TEST(Chunks, BuffersStayForTheNextMicroBatch) {
  const auto layers = ten({.parameter_copy_ns = 100});
  const std::int64_t once = chunked_step_ns(layers, {1, false}, {0, 10});
  EXPECT_EQ(chunked_step_ns(layers, {3, false}, {0, 10}), once + std::int64_t{2} * 10 * 30);
}

TEST(Chunks, TheCpuUpdatesUnderTheBackward) {
  // Gradients arrive from 10 x 10 + 20 + 5 on, 20 apart; the last update ends 5 + 15 after the backward.
  EXPECT_EQ(chunked_step_ns(ten({.gradient_copy_ns = 5, .cpu_update_ns = 15}), kOnePass, {0, 10}), 10 * 30 + 5 + 15);
  // Updates of 40 follow each other.
  EXPECT_EQ(chunked_step_ns(ten({.gradient_copy_ns = 5, .cpu_update_ns = 40}), kOnePass, {0, 10}),
            10 * 10 + 20 + 5 + 10 * 40);
  // Three persistent ones: their backward, and the next forward of theirs, go on meanwhile.
  EXPECT_EQ(chunked_step_ns(ten({.gradient_copy_ns = 5, .cpu_update_ns = 40}), kOnePass, {3, 10}),
            7 * 10 + 20 + 5 + 7 * 40);
  // Where the norm is wanted first, all updates follow the backward.
  EXPECT_EQ(chunked_step_ns(ten({.gradient_copy_ns = 5, .cpu_update_ns = 15}), {1, true}, {0, 10}), 10 * 30 + 10 * 15);
}

TEST(Chunks, SwappedAndRecomputedLayersTakeTheirTimes) {
  auto layers = ten({});
  for (std::size_t l = 1; l < 3; ++l) layers[l].saved_out_ns = 70, layers[l].saved_in_ns = 50;
  for (std::size_t l = 3; l < 6; ++l) layers[l].recompute_ns = 10;
  // Out: from 20 to 160, 60 after the forward. In: layer 2's while layers 5 to 3 compute, then layer 1's.
  EXPECT_EQ(chunked_step_ns(layers, kOnePass, {10, 0}), 10 * 10 + 60 + 10 * 20 + 3 * 10);
  for (std::size_t l = 1; l < 3; ++l) layers[l].saved_in_ns = 70;
  // Both take 140 from when layer 6 is done, where 3 x 30 + 20 compute.
  EXPECT_EQ(chunked_step_ns(layers, kOnePass, {10, 0}), 10 * 10 + 60 + 10 * 20 + 3 * 10 + 30);
}

TEST(Chunks, MoreBuffersNeverTakeLonger) {
  for (std::int64_t copy_ns : {1, 7, 12, 25, 60})
    for (std::int64_t passes : {1, 2, 5})
      for (std::size_t persistent = 0; persistent < 10; persistent += 3) {
        auto layers = ten({.gradient_copy_ns = copy_ns, .cpu_update_ns = 22, .parameter_copy_ns = copy_ns});
        for (std::size_t l = 0; l < 4; ++l) layers[l].saved_out_ns = layers[l].saved_in_ns = 3 * copy_ns;
        for (std::size_t buffers = 1; buffers < 12; ++buffers)
          EXPECT_LE(chunked_step_ns(layers, {passes, false}, {persistent, buffers + 1}),
                    chunked_step_ns(layers, {passes, false}, {persistent, buffers}));
      }
}

// Parameters, states and activations weigh about the same.
Scenario balanced_model(std::int64_t device_kib) {
  Scenario s = gpt_scenario("protrain", device_kib << 10, /*layers=*/8);
  s.workload.precision = DType::BF16;
  s.workload.batch = 8;
  return s;
}

TEST(ChunkSearch, MoreMemoryIsNeverSlower) {
  for (const double clip_norm : {0.0, 1.0}) {
    std::int64_t before = std::numeric_limits<std::int64_t>::max(), layouts = 0;
    for (std::int64_t kib = 3072; kib <= 16384; kib += 512) {
      Scenario scenario = balanced_model(kib);
      scenario.optimizer.clip_norm = clip_norm;
      const ChunkLayout layout = choose_chunks(scenario, {});
      if (!layout.fits) continue;
      EXPECT_LE(layout.step_ns, before) << kib;
      layouts += layout.step_ns < before;
      before = layout.step_ns;
    }
    EXPECT_GT(layouts, 4) << "each gain of memory is a gain of time";
  }
}

TEST(ChunkSearch, WhatTheUserGivesIsTaken) {
  const Scenario scenario = balanced_model(1 << 20);
  const ChunkLayout free = choose_chunks(scenario, {});
  EXPECT_TRUE(free.fits);
  EXPECT_EQ(free.activations->offload + free.activations->recompute, 0);
  const ChunkLayout given =
      choose_chunks(scenario, {.persistent = 2, .buffers = 3, .activations = BlockActivations{1, 4}});
  EXPECT_TRUE(given.fits);
  EXPECT_EQ(given.persistent, 2);
  EXPECT_EQ(given.buffers, 3);
  EXPECT_EQ(given.activations->offload, 1);
  EXPECT_EQ(given.activations->recompute, 4);
  EXPECT_GE(given.step_ns, free.step_ns);
}

TEST(ChunkSearch, WhereNothingFitsItTakesTheLeast) {
  const ChunkLayout layout = choose_chunks(balanced_model(64), {});
  EXPECT_FALSE(layout.fits);
  EXPECT_EQ(layout.persistent, 0);
  EXPECT_EQ(layout.buffers, 1);
  EXPECT_GT(layout.activations->offload, 0);
}

// Nothing that was laid out to stay is evicted.
TEST(ChunkSearch, WhatIsChosenFits) {
  for (const std::int64_t kib : {4096, 5120, 6144, 8192, 12288}) {
    const Scenario scenario = balanced_model(kib);
    const ChunkLayout layout = choose_chunks(scenario, {});
    ASSERT_TRUE(layout.fits) << kib;
    const auto run = run_null(scenario);
    EXPECT_EQ(run.violation, "");
    const Graph& graph = run.scheduler->graph();
    std::int64_t moved = 0;
    for (const auto& entry : run.log.entries())
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Copy && graph.tensor_of(command.part.value).role == Role::Activation)
          moved += graph.tensor_of(command.part.value).layer >= layout.activations->offload + 1;
    EXPECT_EQ(moved, 0) << kib;
  }
}

TEST(ProTrain, RefusesWhatIsNoNumber) {
  for (const auto& [option, text] :
       {std::pair{"persistent_chunks", "-1"}, {"chunk_buffers", "0"}, {"chunk_buffers", "few"}}) {
    Scenario scenario = balanced_model(1 << 20);
    scenario.policy.options[option] = text;
    EXPECT_THROW(run_null(scenario), ConfigError) << option;
  }
}

}  // namespace
}  // namespace tandem
