// Attention with its scores in memory: what it saves.
#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

Scenario scenario_of(const std::string& family, const std::string& attention) {
  Scenario s = small_scenario(family);
  s.workload.precision = DType::BF16;
  s.workload.keys["attention"] = attention;
  s.steps = 1;
  return s;
}

// Bytes of a block's activations that its backward reads.
std::int64_t saved_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (graph.label(graph.op(id).label) == "block0.forward")
      for (const Write& write : graph.op(id).writes) bytes += graph.value(write.value).bytes;
  return bytes;
}

TEST(UnfusedAttention, SavesItsSoftmaxInsteadOfALogSumExp) {
  constexpr std::int64_t kScores = 2 * 3 * 40 * 40, kStatistics = 2 * 3 * 40;  // batch, heads, sequence
  for (const char* family : {"gpt", "bert"})
    EXPECT_EQ(saved_bytes(whole_graph(scenario_of(family, "unfused"))),
              saved_bytes(whole_graph(scenario_of(family, "fused"))) + 2 * kScores - 4 * kStatistics);
}

TEST(UnfusedAttention, IsForTraining) {
  Scenario decoding = scenario_of("gpt_decode", "fused");
  decoding.workload.batch = 1;
  EXPECT_NO_THROW(whole_graph(decoding));
  decoding.workload.keys["attention"] = "unfused";
  EXPECT_THROW(whole_graph(decoding), ConfigError);
  Scenario huge = scenario_of("gpt", "unfused");
  huge.workload.keys["sequence"] = 1 << 24;  // 2^48 scores a head
  EXPECT_THROW(whole_graph(huge), ConfigError);
  huge.workload.keys["attention"] = "fused";
  EXPECT_NO_THROW(whole_graph(huge));
}

}  // namespace
}  // namespace tandem
