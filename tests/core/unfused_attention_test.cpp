// Attention with its scores in memory: what it saves, and its kernels, by arithmetic.
#include "core/workloads/common/unfused_attention.hpp"

#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

std::int64_t sum_of(const std::vector<Kernel>& kernels, std::int64_t Kernel::*amount) {
  std::int64_t sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.*amount;
  return sum;
}

Scenario scenario_of(const std::string& family, const std::string& attention) {
  Scenario s = small_scenario(family);
  s.workload.precision = DType::BF16;
  s.workload.attention = attention;
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

// Two products forward and four backward; each moves the scores once, besides rows of heads.
TEST(UnfusedAttention, MovesItsScores) {
  TransformerSizes s;
  s.batch = 2, s.sequence = 1024, s.hidden = 2048, s.heads = 16, s.type = DType::F16;
  const std::int64_t scores = 2 * 16 * 1024 * 1024 * 2, row = 2 * 1024 * 2048 * 2, mask = 2 * 1024 * 1024;
  const std::int64_t product = std::int64_t{2} * 2 * 16 * 1024 * 1024 * 128;
  const auto forward = unfused_attention_forward_kernels(s), backward = unfused_attention_backward_kernels(s);
  EXPECT_EQ(sum_of(forward, &Kernel::flops), 2 * product);
  EXPECT_EQ(sum_of(backward, &Kernel::flops), 4 * product);
  // Scores: written, masked, through the softmax, read; three operands' copies and the result's, two products' rows.
  EXPECT_EQ(sum_of(forward, &Kernel::bytes), 6 * scores + mask + (4 * 2 + 2 * 2) * row);
  s.causal = false;
  EXPECT_EQ(sum_of(unfused_attention_forward_kernels(s), &Kernel::bytes), 4 * scores + (4 * 2 + 2 * 2) * row);
  // Four products' scores, three of the softmax's gradient; four copies, two scalings, four products' rows.
  EXPECT_EQ(sum_of(backward, &Kernel::bytes), 7 * scores + (4 * 2 + 2 * 2 + 4 * 2) * row);
}

TEST(UnfusedAttention, IsForTraining) {
  Scenario decoding = scenario_of("gpt_decode", "fused");
  decoding.workload.batch = 1;
  EXPECT_NO_THROW(whole_graph(decoding));
  decoding.workload.attention = "unfused";
  EXPECT_THROW(whole_graph(decoding), ConfigError);
  Scenario huge = scenario_of("gpt", "unfused");
  huge.workload.sequence = 1 << 24;  // 2^48 scores a head
  EXPECT_THROW(whole_graph(huge), ConfigError);
  huge.workload.attention = "fused";
  EXPECT_NO_THROW(whole_graph(huge));
}

}  // namespace
}  // namespace tandem
