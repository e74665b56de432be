// The order in which a stage of a pipeline takes its passes, and where a network is cut: against orders written by hand
// and against what any order must keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/transforms/pipeline/pieces.hpp"
#include "core/transforms/pipeline/schedule.hpp"

namespace tandem {
namespace {

// "F0.1": the forward of micro-batch 0 over the second piece.
std::string text_of(const std::vector<StageTurn>& turns) {
  std::string text;
  for (const StageTurn& turn : turns)
    text += (text.empty() ? "" : " ") +
            std::string(turn.of == Gradients::Weights ? "W"
                        : turn.backward               ? "B"
                                                      : "F") +
            std::to_string(turn.micro_batch) + (turn.chunk > 0 ? "." + std::to_string(turn.chunk) : "");
  return text;
}

std::string turns(const char* schedule, const PipelineShape& shape, std::int32_t stage) {
  return text_of(stage_turns(schedule, shape, stage));
}

TEST(PipelineSchedule, AsDrawnByHand) {
  const PipelineShape four{.stages = 4, .chunks = 1, .micro_batches = 5};
  EXPECT_EQ(turns("naive", four, 2), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  EXPECT_EQ(turns("gpipe", four, 2), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
  // Narayanan et al., SC 2021, figure 4, above: the first of four stages has three more under way than the last.
  EXPECT_EQ(turns("1f1b", four, 0), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
  EXPECT_EQ(turns("1f1b", four, 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(turns("1f1b", four, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  // Qi et al., ICLR 2024, figure 3, of which ZB-H1 is above: the first stage is not late, the last one by three.
  EXPECT_EQ(turns("zero_bubble", four, 0), "F0 F1 F2 F3 B0 W0 F4 B1 W1 B2 W2 B3 W3 B4 W4");
  EXPECT_EQ(turns("zero_bubble", four, 2), "F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 B4 W2 W3 W4");
  EXPECT_EQ(turns("zero_bubble", four, 3), "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 W2 W3 W4");
  // Hippie: the last of four stages alone takes turns.
  EXPECT_EQ(turns("hippie", four, 0), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
  EXPECT_EQ(turns("hippie", four, 2), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
  EXPECT_EQ(turns("hippie", four, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  // AxoNN: the second of three stages takes forwards as they come, until the first backward is back.
  const PipelineShape three{.stages = 3, .chunks = 1, .micro_batches = 5};
  EXPECT_EQ(turns("axonn", three, 0), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(turns("axonn", three, 1), "F0 F1 F2 B0 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(turns("axonn", three, 2), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  // The fourth of five: 4 arrives as the last stage is done with 0. What goes backward is first.
  EXPECT_EQ(turns("axonn", {.stages = 5, .chunks = 1, .micro_batches = 5}, 3), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
  // The same figure, below: two pieces a stage, groups of as many micro-batches as there are stages.
  EXPECT_EQ(turns("interleaved", {.stages = 2, .chunks = 2, .micro_batches = 4}, 1),
            "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3");
}

// Every pass once; a piece's backwards in the order of micro-batches, each after its forward; and an order of all
// stages' turns exists, in which each waits for what it reads alone.
TEST(PipelineSchedule, EveryOrderCanBeRun) {
  for (const char* schedule : {"naive", "gpipe", "1f1b", "zero_bubble", "hippie", "axonn", "interleaved"})
    for (const std::int32_t stages : {2, 3, 4, 7})
      for (const std::int32_t chunks : {1, 2, 3})
        for (const std::int32_t rounds : {1, 2, 3}) {
          if (chunks > 1 && std::string(schedule) != "interleaved") continue;
          const PipelineShape shape{stages, chunks, stages * rounds};
          SCOPED_TRACE(std::string(schedule) + " " + std::to_string(stages) + " " + std::to_string(chunks) + " " +
                       std::to_string(shape.micro_batches));
          std::vector<std::vector<StageTurn>> all;
          for (std::int32_t stage = 0; stage < stages; ++stage) all.push_back(stage_turns(schedule, shape, stage));
          std::vector<std::size_t> next(static_cast<std::size_t>(stages), 0);
          // Passes that a piece, counted over all stages, has done.
          std::map<std::int32_t, std::int32_t> forwards, backwards, weights;
          const std::int32_t pieces = stages * chunks;
          std::size_t done = 0;
          for (bool moved = true; moved;) {
            moved = false;
            for (std::int32_t stage = 0; stage < stages; ++stage) {
              const auto at = static_cast<std::size_t>(stage);
              if (next[at] == all[at].size()) continue;
              const StageTurn turn = all[at][next[at]];
              const std::int32_t piece = turn.chunk * stages + stage;
              if (!turn.backward) {
                EXPECT_EQ(turn.micro_batch, forwards[piece]);
                if (piece > 0 && forwards[piece - 1] <= turn.micro_batch) continue;
                ++forwards[piece];
              } else if (turn.of == Gradients::Weights) {
                EXPECT_EQ(turn.micro_batch, weights[piece]++);
                EXPECT_LT(turn.micro_batch, backwards[piece]);
              } else {
                EXPECT_EQ(turn.of, std::string(schedule) == "zero_bubble" ? Gradients::Inputs : Gradients::All);
                EXPECT_EQ(turn.micro_batch, backwards[piece]);
                if (forwards[piece] <= turn.micro_batch) continue;
                if (piece + 1 < pieces && backwards[piece + 1] <= turn.micro_batch) continue;
                ++backwards[piece];
              }
              ++next[at], ++done, moved = true;
            }
          }
          const std::int32_t passes = std::string(schedule) == "zero_bubble" ? 3 : 2;
          EXPECT_EQ(done, static_cast<std::size_t>(passes * pieces * shape.micro_batches))
              << "they wait for each other";
        }
}

// From a micro-batch's first pass to its last, at each stage as many as the first stage of 1F1B has.
TEST(PipelineSchedule, ZeroBubbleHoldsNoMoreMicroBatchesThan1F1B) {
  for (const std::int32_t stages : {2, 3, 4, 8, 16})
    for (const std::int32_t micro_batches : {1, 2, 3, 5, 8, 16, 40}) {
      const PipelineShape shape{stages, 1, micro_batches};
      const auto at_once = [&](const char* schedule, std::int32_t stage) {
        return micro_batches_at_once(stage_turns(schedule, shape, stage), micro_batches);
      };
      for (std::int32_t stage = 0; stage < stages; ++stage)
        EXPECT_EQ(at_once("zero_bubble", stage), at_once("1f1b", 0)) << stages << " " << micro_batches << " " << stage;
    }
}

TEST(PipelineSchedule, MicroBatchesAtOnce) {
  const auto at_once = [](const char* schedule, const PipelineShape& shape, std::int32_t stage) {
    return micro_batches_at_once(stage_turns(schedule, shape, stage), shape.micro_batches);
  };
  const PipelineShape four{.stages = 4, .chunks = 1, .micro_batches = 8};
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(at_once("naive", four, stage), 1);
    EXPECT_EQ(at_once("gpipe", four, stage), 8);
    EXPECT_EQ(at_once("hippie", four, stage), stage == 3 ? 1 : 8);
    EXPECT_EQ(at_once("1f1b", four, stage), 4 - stage);
  }
  EXPECT_EQ(at_once("1f1b", {.stages = 4, .chunks = 1, .micro_batches = 2}, 0), 2);
}

TEST(PipelineSchedule, RefusesWhatItHasNot) {
  EXPECT_THROW(stage_turns("1f1b", {.stages = 2, .chunks = 2, .micro_batches = 4}, 0), ConfigError);
  EXPECT_THROW(stage_turns("interleaved", {.stages = 4, .chunks = 2, .micro_batches = 6}, 0), ConfigError);
}

// Nothing but what kernels say.
const HardwareProfile kMachine{};
const PassTimes kTimes{kMachine};

// Stages of which each takes three times so many nanoseconds, a third of it forward.
TrainingPlan plan_of(const std::vector<std::int64_t>& costs) {
  TrainingPlan plan;
  for (const std::int64_t cost : costs) {
    StageSpec stage;
    stage.forward = plan.add({{"f", DType::F32, {cost}, {fixed_kernel(cost)}}, 0});
    stage.backward = plan.add({{"b", DType::F32, {cost}, {fixed_kernel(2 * cost)}}, 0});
    plan.stages.push_back(stage);
  }
  return plan;
}

TEST(PipelinePieces, TheLongestIsAsShortAsCanBe) {
  EXPECT_THAT(pieces_of(plan_of({1, 1, 1, 1, 1, 1}), 3, kTimes), ::testing::ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(pieces_of(plan_of({9, 1, 1, 1, 1, 5}), 3, kTimes), ::testing::ElementsAre(0, 1, 1, 1, 1, 2));
  EXPECT_THAT(pieces_of(plan_of({0, 8, 8, 8, 8, 3}), 4, kTimes), ::testing::ElementsAre(0, 0, 1, 2, 3, 3));
  EXPECT_THAT(pieces_of(plan_of({5, 5, 5}), 3, kTimes), ::testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(pieces_of(plan_of({0, 0, 9}), 3, kTimes), ::testing::ElementsAre(0, 1, 2)) << "none is empty";
  EXPECT_THROW(pieces_of(plan_of({1, 1}), 3, kTimes), ConfigError);
}

TEST(PipelinePieces, HaveTheModulesThatAPersonSays) {
  const std::vector<std::int64_t> given = {1, 3, 2};
  EXPECT_THAT(pieces_of(plan_of({1, 1, 1, 1, 1, 1}), given, kTimes), ::testing::ElementsAre(0, 1, 1, 1, 2, 2));
  for (const std::vector<std::int64_t>& others : {std::vector<std::int64_t>(5, 1), std::vector<std::int64_t>(7, 1)})
    EXPECT_THROW(pieces_of(plan_of(others), given, kTimes), ConfigError);
}

// An embedding, so many layers of one kind, and a head, with a norm before it where asked.
TrainingPlan layers_of(std::ptrdiff_t layers, bool norm = false) {
  TrainingPlan plan = plan_of({1, 10, 1, 400});
  const StageSpec layer = plan.stages[1];
  if (!norm) plan.stages.erase(plan.stages.begin() + 2);
  for (std::ptrdiff_t i = 1; i < layers; ++i) plan.stages.insert(plan.stages.begin() + 1, layer);
  return plan;
}

// Megatron-LM's cut: the ends carry embedding and head besides, however long these take.
TEST(PipelinePieces, HaveAsManyLayers) {
  EXPECT_THAT(pieces_of(layers_of(4), 2, kTimes, CutBy::Layers), ::testing::ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(pieces_of(layers_of(4), 2, kTimes), ::testing::ElementsAre(0, 0, 0, 0, 0, 1))
      << "by time the head is alone";
  EXPECT_THAT(pieces_of(layers_of(6, /*norm=*/true), 3, kTimes, CutBy::Layers),
              ::testing::ElementsAre(0, 0, 0, 1, 1, 2, 2, 2, 2));
  EXPECT_THAT(pieces_of(layers_of(8), 8, kTimes, CutBy::Layers), ::testing::ElementsAre(0, 0, 1, 2, 3, 4, 5, 6, 7, 7));
}

TEST(PipelinePieces, OfOddNumbersOfLayersHaveNoMoreThanTheyMust) {
  for (const std::ptrdiff_t layers : {5, 7, 11, 13})
    for (const std::int32_t pieces : {2, 3, 4, 5}) {
      const std::vector<std::int32_t> piece_of = pieces_of(layers_of(layers), pieces, kTimes, CutBy::Layers);
      const std::ptrdiff_t most = (layers + pieces - 1) / pieces;
      EXPECT_TRUE(std::is_sorted(piece_of.begin(), piece_of.end())) << layers << ' ' << pieces;
      EXPECT_EQ(piece_of.back(), pieces - 1) << layers << ' ' << pieces;
      for (std::int32_t piece = 0; piece < pieces; ++piece) {
        EXPECT_LE(std::count(piece_of.begin() + 1, piece_of.end() - 1, piece), most)
            << layers << ' ' << pieces << ' ' << piece;
        EXPECT_GE(std::count(piece_of.begin(), piece_of.end(), piece), 1) << layers << ' ' << pieces << ' ' << piece;
      }
    }
}

// Layers that several ranks divide are modules of several stages each.
TEST(PipelinePieces, CutNoLayer) {
  TrainingPlan plan = layers_of(4);
  StageSpec rest = plan.stages[1];
  rest.continues = true;
  for (std::ptrdiff_t at : {5, 4, 3, 2}) plan.stages.insert(plan.stages.begin() + at, rest);
  EXPECT_THAT(pieces_of(plan, 2, kTimes, CutBy::Layers), ::testing::ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
}

// What ranks send each other in a layer is an op of its own.
TEST(PipelinePieces, CountLayersThatRanksDivide) {
  TrainingPlan plan = layers_of(4);
  for (std::ptrdiff_t at : {5, 4, 3, 2}) {
    StageSpec sum;
    sum.continues = true;
    sum.exchange = Exchange::Forward;
    sum.forward = plan.add({{"all_reduce_sum", DType::F32, {at}, {fixed_kernel(at)}}, 0});
    plan.stages.insert(plan.stages.begin() + at, sum);
  }
  EXPECT_THAT(pieces_of(plan, 2, kTimes, CutBy::Layers), ::testing::ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(pieces_of(plan, 4, kTimes, CutBy::Layers), ::testing::ElementsAre(0, 0, 0, 1, 1, 2, 2, 3, 3, 3));
}

TEST(PipelinePieces, OfLayersThatAllDifferCountEach) {
  EXPECT_THAT(pieces_of(plan_of({9, 1, 1, 1}), 2, kTimes, CutBy::Layers), ::testing::ElementsAre(0, 0, 1, 1));
}

TEST(PipelinePieces, WhatIsHeldIsWithWhoeverReadsIt) {
  TrainingPlan plan = plan_of({1, 1, 1, 1});
  StageSpec held;
  held.held_for = 4;  // the last, once this one is before all
  plan.stages.insert(plan.stages.begin(), held);
  EXPECT_THAT(pieces_of(plan, 2, kTimes), ::testing::ElementsAre(1, 0, 0, 1, 1));
}

}  // namespace
}  // namespace tandem
