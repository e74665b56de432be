// A block in tiles: as much arithmetic, and a part of its parameters and gradients at a time.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/errors.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

Scenario scenario_of(std::int64_t tiles) {
  Scenario s = small_scenario("gpt");
  s.steps = 1;
  s.workload.keys["hidden"] = 512, s.workload.keys["heads"] = 8;
  s.workload.keys["linear_tiles"] = tiles;
  return s;
}

// Of all of a step's ops.
struct Figures {
  std::int64_t flops = 0;
  std::int64_t parameters = 0;
  std::int64_t largest = 0;  // bytes of parameters and gradients that a block's op needs at once
};

Figures figures_of(const Graph& graph) {
  Figures f;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase != Phase::Forward && op.phase != Phase::Backward) continue;
    f.flops += graph.work_of(op).flops();
    if (!graph.label(op.label).starts_with("block")) continue;
    std::int64_t bytes = 0;
    const auto count = [&](ValueId value) {
      const Role role = graph.tensor_of(value).role;
      if (role == Role::Parameter || role == Role::Gradient) bytes += graph.value(value).bytes;
    };
    for (const ValueId read : op.reads) count(read);
    for (const Write& write : op.writes) count(write.value);
    f.largest = std::max(f.largest, bytes);
  }
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.role == Role::Parameter)
      for (const Field& field : tensor.layout->fields) f.parameters += field.elements();
  return f;
}

TEST(LinearTiles, HoldAPartOfABlockAtATime) {
  const Figures whole = figures_of(whole_graph(scenario_of(1)));
  for (const std::int64_t tiles : {2, 4, 8}) {
    const Figures tiled = figures_of(whole_graph(scenario_of(tiles)));
    EXPECT_EQ(tiled.flops, whole.flops);
    EXPECT_EQ(tiled.parameters, whole.parameters);
    // A tile of the feed-forward has 8 of a block's 12 h^2 / tiles, norms and biases besides.
    constexpr std::int64_t kH = 512;
    EXPECT_LE(tiled.largest, 2 * 4 * (8 * kH * kH / tiles + 8 * kH));
    EXPECT_GE(tiled.largest, 2 * 4 * (8 * kH * kH / tiles));
  }
  EXPECT_GE(whole.largest, std::int64_t{2} * 4 * 12 * 512 * 512);
}

// What a block keeps is one input, as if it were whole.
TEST(LinearTiles, RecomputeBlockByBlock) {
  Scenario s = scenario_of(2);
  s.workload.keys["layers"] = 2;
  s.workload.recompute = "block";
  const Graph graph = whole_graph(s);
  std::string order;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (graph.op(id).phase == Phase::Recompute || graph.op(id).phase == Phase::Backward)
      order += std::string(graph.label(graph.op(id).label)) + " ";
  const auto block = [](const std::string& name) {
    const std::string a = name + "_attention", f = name + "_feed_forward";
    return a + "0.recompute " + a + "1.recompute " + f + "0.recompute " + f + "1.recompute " + f + "1.backward " + f +
           "0.backward " + a + "1.backward " + a + "0.backward ";
  };
  EXPECT_EQ(order, "head.backward " + block("block1") + block("block0") + "embedding.backward ");
}

TEST(LinearTiles, AreWholeHeadsOfAGpt) {
  EXPECT_THROW(whole_graph(scenario_of(3)), ConfigError);
  EXPECT_THROW(whole_graph(scenario_of(16)), ConfigError);
  Scenario deep = scenario_of(8);
  deep.workload.keys["layers"] = 10'000;  // 160,000 stages
  EXPECT_THROW(whole_graph(deep), ConfigError);
}

}  // namespace
}  // namespace tandem
