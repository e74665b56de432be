// The loss over a tile of the tokens at a time: as much arithmetic, less memory.
#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

// Bytes that the first op of this label needs at once, and its products' flops.
struct Needs {
  std::int64_t bytes = 0, flops = 0;
};

Needs needs_of(const Graph& graph, std::string_view label) {
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (graph.label(op.label) != label) continue;
    Needs needs{op.workspace_bytes, 0};
    for (ValueId read : op.reads) needs.bytes += graph.value(read).bytes;
    for (const Write& write : op.writes) needs.bytes += graph.value(write.value).bytes;
    for (const Kernel& kernel : graph.work_of(op).kernels) needs.flops += kernel.flops;
    return needs;
  }
  ADD_FAILURE() << label;
  return {};
}

Scenario large_vocabulary(const std::string& family, std::int64_t tiles) {
  Scenario s = small_scenario(family);
  s.steps = 1;
  s.workload.batch = 25;  // 1,000 tokens
  s.workload.keys["vocabulary"] = 50'000;
  s.workload.precision = DType::BF16;
  s.workload.keys["loss_tiles"] = tiles;
  return s;
}

TEST(TiledLoss, TakesAsManyFlopsAndLessMemory) {
  for (const char* family : {"gpt", "bert"}) {
    const Graph whole = whole_graph(large_vocabulary(family, 1)), tiled = whole_graph(large_vocabulary(family, 8));
    const Needs forward = needs_of(whole, "head.forward"), backward = needs_of(whole, "head.backward");
    const Needs tiled_forward = needs_of(tiled, "head.forward"), tiled_backward = needs_of(tiled, "head.backward");
    EXPECT_EQ(tiled_forward.flops + tiled_backward.flops, forward.flops + backward.flops);
    // Of 1,000 x 50,000 numbers: logits, as fp32, log-probabilities; then these and two gradients, 14 bytes in 16 bits;
    // and oneDNN's copies of a tile's and of the weight.
    constexpr std::int64_t kWeight = 2 * 50'000 * 48;
    constexpr std::int64_t kNumbers = 1000 * 50'000;
    EXPECT_GT(std::min(forward.bytes, backward.bytes), 10 * kNumbers);
    EXPECT_LT(tiled_forward.bytes, forward.bytes - 10 * kNumbers + 16 * kNumbers / 8 + kWeight + 10'000'000);
    EXPECT_LT(tiled_backward.bytes, backward.bytes - 10 * kNumbers);
  }
}

TEST(TiledLoss, AMicroBatchHasNoMoreTilesThanTokens) {
  EXPECT_NO_THROW(whole_graph(large_vocabulary("gpt", 1000)));
  EXPECT_THROW(whole_graph(large_vocabulary("gpt", 1001)), ConfigError);
}

}  // namespace
}  // namespace tandem
