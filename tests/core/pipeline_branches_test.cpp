// Which device computes which branch of a network: against divisions written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/transforms/pipeline/branches.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// Nothing but what kernels say.
const HardwareProfile kMachine{};
const PassTimes kTimes{kMachine};

struct Layer {
  std::int64_t cost;
  std::vector<std::int32_t> reads;  // whose outputs
};

TrainingPlan plan_of(const std::vector<Layer>& layers) {
  TrainingPlan plan;
  for (const Layer& layer : layers) {
    StageSpec stage;
    stage.forward = plan.add({{"f", DType::F32, {layer.cost}, {fixed_kernel(layer.cost)}}, 0});
    for (const std::int32_t read : layer.reads)
      stage.inputs.push_back({.from = PortSpec::From::Stage, .index = read, .gradient = true});
    stage.outputs.push_back({});
    plan.stages.push_back(stage);
  }
  return plan;
}

std::string refusal(const std::vector<Layer>& layers, std::int32_t pieces) {
  try {
    branches_of(plan_of(layers), pieces, kTimes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Two encoders of two layers each, and a head.
const std::vector<Layer> kTwoEncoders = {{4, {}}, {4, {0}}, {3, {}}, {3, {2}}, {1, {1, 3}}};

TEST(PipelineBranches, AreOnDevicesOfTheirOwn) {
  const BranchPieces two = branches_of(plan_of(kTwoEncoders), 2, kTimes);
  EXPECT_THAT(two.piece_of, ElementsAre(0, 0, 1, 1, 1)) << "8 and 6 + 1";
  EXPECT_THAT(two.until_end, ElementsAre(1, 0));
  const BranchPieces three = branches_of(plan_of(kTwoEncoders), 3, kTimes);
  EXPECT_THAT(three.piece_of, ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(three.until_end, ElementsAre(1, 1, 0)) << "neither encoder waits for the other";
}

TEST(PipelineBranches, TheLongestDeviceIsAsShortAsCanBe) {
  // Four encoders of 5, 4, 3, 3 and a head of 2: 5 + 3 and 4 + 3 + 2.
  const std::vector<Layer> four = {{5, {}}, {4, {}}, {3, {}}, {3, {}}, {2, {0, 1, 2, 3}}};
  EXPECT_THAT(branches_of(plan_of(four), 2, kTimes).piece_of, ElementsAre(0, 1, 0, 1, 1));
  // Encoders of 1 and 9 before a head of 10. Both encoders on one device and the head on another would be no branches.
  const std::vector<Layer> small = {{1, {}}, {9, {}}, {10, {0, 1}}};
  EXPECT_THAT(branches_of(plan_of(small), 2, kTimes).piece_of, ElementsAre(1, 0, 1));
}

// What goes apart and comes together twice: no piece may be left and come back to.
TEST(PipelineBranches, AreNeverLeftAndComeBackTo) {
  const std::vector<Layer> twice = {{1, {}}, {5, {0}}, {5, {0}}, {1, {1, 2}}, {5, {3}}, {5, {3}}, {1, {4, 5}}};
  for (const std::int32_t pieces : {3, 4, 5, 7}) {
    SCOPED_TRACE(std::to_string(pieces) + " pieces");
    const BranchPieces out = branches_of(plan_of(twice), pieces, kTimes);
    for (std::size_t i = 0; i < twice.size(); ++i)
      for (const std::int32_t read : twice[i].reads)
        EXPECT_LE(out.piece_of[static_cast<std::size_t>(read)], out.piece_of[i]);
    EXPECT_EQ(out.piece_of.back(), pieces - 1) << "the loss is on the last one";
  }
  // Both readers of a value add to its gradient in a row: one sends it on to the other, which comes after.
  EXPECT_THAT(branches_of(plan_of({{1, {}}, {5, {0}}, {5, {0}}, {1, {1, 2}}}), 4, kTimes).until_end,
              ElementsAre(3, 2, 1, 0));
}

TEST(PipelineBranches, RefusesWhatHasNone) {
  EXPECT_EQ(refusal({{1, {}}, {1, {0}}, {1, {1}}}, 2),
            "parallel.cut: the network has no branches that are independent; allowed: balanced, layers");
  EXPECT_THAT(refusal(kTwoEncoders, 4), ::testing::HasSubstr("3 branches to divide among 4 devices"));
  std::vector<Layer> many;
  for (std::int32_t i = 0; i < 12; ++i) many.push_back({1, {}});
  many.push_back({1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}});
  EXPECT_THAT(refusal(many, 2), ::testing::HasSubstr("13 branches"));
}

}  // namespace
}  // namespace tandem
