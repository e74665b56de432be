// What a step takes of the device's memory, and how many layers' states fit beside it.
#include "core/policies/common/step_memory.hpp"

#include <gtest/gtest.h>

#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kLayers = 10;  // of which 8 are blocks

// Parameters outweigh all else.
Graph deep_step(double clip_norm = 0, std::int64_t micro_batches = 1) {
  Scenario scenario = testing::gpt_scenario("balanced", 1 << 20, kLayers - 2);
  scenario.workload.precision = DType::BF16;
  scenario.workload.keys["hidden"] = 256;
  scenario.workload.batch = micro_batches;
  scenario.workload.micro_batches = micro_batches;
  scenario.workload.keys["sequence"] = 8;
  scenario.optimizer.clip_norm = clip_norm;
  Graph graph;
  const auto source = find_workload("gpt")->make(scenario, {});
  source->prologue(graph);
  source->append_step(graph, 0);
  return graph;
}

std::int64_t bytes_of(const Graph& graph, Role role) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).role == role) bytes += graph.tensor(id).bytes;
  return bytes;
}

TEST(StepMemory, GradientsOfLayersThatStayGoAtOnce) {
  for (const std::int64_t micro_batches : {1, 2}) {
    const Graph graph = deep_step(0, micro_batches);
    const std::int64_t gradients = bytes_of(graph, Role::Gradient);
    EXPECT_GT(activation_peak(graph, {}), gradients);
    const std::int64_t saved = activation_peak(graph, {}) - activation_peak(graph, {}, kLayers);
    // A second micro-batch adds to all of them.
    EXPECT_GT(saved, micro_batches == 1 ? gradients / 2 : 0);
    EXPECT_LT(saved, micro_batches == 1 ? gradients : gradients / 2);
  }
  const Graph clipped = deep_step(1);
  EXPECT_EQ(activation_peak(clipped, {}, kLayers), activation_peak(clipped, {})) << "their norm is wanted first";
}

TEST(StepMemory, AsManyLayersStayAsFit) {
  const Graph graph = deep_step();
  EXPECT_EQ(most_resident(graph, 1, {}, 2), 0);
  EXPECT_EQ(most_resident(graph, std::int64_t{1} << 40, {}, 2), kLayers);
  const std::int64_t all = bytes_of(graph, Role::OptimizerState) + bytes_of(graph, Role::Parameter);
  std::int32_t before = 0, steps = 0;
  for (std::int64_t capacity = all / 4; capacity < 2 * all; capacity += all / 16) {
    const std::int32_t stay = most_resident(graph, capacity, {}, 2);
    EXPECT_GE(stay, before);
    steps += stay > before;
    const auto left = [&](std::int32_t resident) { return bytes_left(graph, capacity, {}, {resident, 2}); };
    EXPECT_TRUE(stay == 0 || left(stay) >= 0) << stay;
    EXPECT_TRUE(stay == kLayers || left(stay + 1) < 0) << stay;
    before = stay;
  }
  EXPECT_GT(steps, 3);
}

TEST(StepMemory, MoreLayersStayIfGradientsLeave) {
  const Graph graph = deep_step();
  const std::int64_t all = bytes_of(graph, Role::OptimizerState) + bytes_of(graph, Role::Parameter);
  std::int32_t more = 0;
  for (std::int64_t capacity = all / 4; capacity < 2 * all; capacity += all / 16) {
    const std::int32_t stay = most_resident(graph, capacity, {}, 2);
    const std::int32_t leave = most_resident(graph, capacity, {}, 2, /*gradients_leave=*/true);
    EXPECT_GE(leave, stay);
    more += leave - stay;
    const StatesOnDevice states{.resident = leave, .streamed = 2, .gradients_leave = true};
    EXPECT_TRUE(leave == 0 || bytes_left(graph, capacity, {}, states) >= 0);
  }
  EXPECT_GT(more, 3);
}

// Unlike gradients that stay for a norm, those of other layers leave once they are summed up.
TEST(StepMemory, GradientsThatLeaveTakeNoRoom) {
  for (const double clip_norm : {0.0, 1.0}) {
    const Graph graph = deep_step(clip_norm);
    const std::int64_t saved = activation_peak(graph, {}) - activation_peak(graph, {}, 0, /*others_leave=*/true);
    EXPECT_GT(saved, bytes_of(graph, Role::Gradient) / 2) << clip_norm;
  }
}

TEST(StepMemory, AsManyBuffersAsFit) {
  const Graph graph = deep_step();
  EXPECT_FALSE(most_buffers(graph, 1, {}, 0));
  EXPECT_EQ(most_buffers(graph, std::int64_t{1} << 40, {}, 0), kLayers);
  EXPECT_EQ(most_buffers(graph, std::int64_t{1} << 40, {}, kLayers), 0);
  const std::int64_t all = bytes_of(graph, Role::OptimizerState) + bytes_of(graph, Role::Parameter);
  std::int64_t before = 0;
  for (std::int64_t capacity = all / 4; capacity < 2 * all; capacity += all / 16) {
    const auto buffers = most_buffers(graph, capacity, {}, 2);
    const auto left = [&](std::int64_t count) {
      return bytes_left(graph, capacity, {}, {.resident = 2, .streamed = 0, .buffers = count});
    };
    EXPECT_EQ(buffers.has_value(), left(0) >= 0);
    if (!buffers) continue;
    EXPECT_GE(left(*buffers), 0);
    EXPECT_TRUE(*buffers == kLayers - 2 || left(*buffers + 1) < 0);
    EXPECT_GE(*buffers, before);
    before = *buffers;
  }
  EXPECT_EQ(before, kLayers - 2);
}

}  // namespace
}  // namespace tandem
