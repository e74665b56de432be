// What primitives' kernels read and write, and what they take on a GPU, by arithmetic.
#include <gtest/gtest.h>

#include "core/model/module.hpp"
#include "core/model/passes.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::vector<Kernel> kernels_of(const Call& call, Direction direction) {
  std::vector<Kernel> kernels;
  call.what->primitive.kernels(call.how, call.shapes, direction, {.in = bit(0), .weights = ~Bits{0}}, kernels);
  return kernels;
}

std::int64_t sum_of(const std::vector<Kernel>& kernels, std::int64_t Kernel::*amount) {
  std::int64_t sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.*amount;
  return sum;
}

std::int64_t backward_scratch_on_gpu(const Call& call) {
  WorkspaceMeter meter(kGpuGranule);
  call.what->primitive.scratch(call.how, call.shapes, Direction::Backward, {.in = bit(0), .weights = ~Bits{0}},
                               {.gpu = true}, meter);
  return meter.peak();
}

// Of 4 x 256 tokens of 512 numbers in bf16, a norm goes forward over the input and the output, and backward over the
// gradient, the input and the input's gradient; two statistics in fp32 a token lie beside them.
TEST(Primitives, ANormMovesItsRows) {
  ModuleBuilder m("norm", DType::BF16);
  m.output(m.layer_norm("ln", m.input("x", Shape({4 * 256, 512}, DType::BF16)), 1e-5));
  const auto module = m.build();
  constexpr std::int64_t kRows = 4 * 256 * 512 * 2, kStatistics = 2 * 4 * 256 * 4;
  EXPECT_EQ(kernels_of(module->program[0], Direction::Forward).front().bytes, 2 * kRows + kStatistics);
  EXPECT_EQ(kernels_of(module->program[0], Direction::Backward).front().bytes, 3 * kRows + kStatistics);
}

// The sum over 16,384 rows of an output layer's gradient: 10 groups of threads would fill a GPU, but 16 have no more
// than 256 values a thread.
TEST(Primitives, ASumOverManyRowsIsMadeInMoreGroupsThanFillAGpu) {
  EXPECT_EQ(gpu_row_sum_bytes(16384, 30528), 16 * 30528 * 128 * 4);
  EXPECT_EQ(gpu_row_sum_bytes(4096, 30528), 10 * 30528 * 128 * 4);
}

std::shared_ptr<const Module> attention(std::int64_t batch, std::int64_t hidden, const AttentionOptions& options,
                                        DType type) {
  ModuleBuilder m("attention", type);
  m.output(m.attention("attention", m.input("qkv", Shape({batch * options.sequence, 3 * hidden}, type)), options));
  return m.build();
}

// Beside the gradients of query, key and value, and two copies of the log-sum-exp.
std::int64_t sums_of(std::int64_t batch, std::int64_t sequence, std::int64_t hidden, std::int64_t heads) {
  const auto module = attention(batch, hidden, {.heads = heads, .sequence = sequence}, DType::F32);
  const std::int64_t row = batch * sequence * hidden * 4, kept = batch * sequence * heads * 4;
  return backward_scratch_on_gpu(module->program[0]) - 3 * row - 2 * kept;
}

// 8 x 16 sequences and heads fill a GPU.
TEST(Primitives, ManyHeadsNeedTwoPartsOfTheQuerysGradient) {
  EXPECT_EQ(sums_of(8, 1024, 2048, 16), 64 * kMiB + 2 * (8 * 1024 * 2048 * 4));
}

// 13 heads of one sequence do not: ATen asked for 11 parts on 132 multiprocessors; 148 make 12.
TEST(Primitives, FewHeadsNeedMoreParts) {
  EXPECT_EQ(sums_of(1, 4096, 1664, 13), 32 * kMiB + std::int64_t{12} * (4096 * 1664 * 4));
}

std::int64_t linear_scratch(std::int64_t rows, std::int64_t outputs) {
  ModuleBuilder m("linear", DType::F32);
  m.output(m.linear("linear", m.input("x", Shape({rows, 64}, DType::F32)), outputs));
  return backward_scratch_on_gpu(m.build()->program[0]);
}

// The sum of 2,048 rows of 10,752: ATen asked for 143,130,624 bytes, 26 groups of 4 rows of 32 threads for each 128
// columns, which fill 132 multiprocessors; 148 make 29.
TEST(Primitives, ASumOfFewRowsFillsAGpu) {
  EXPECT_EQ(std::int64_t{26} * 10752 * 128 * 4, 143'130'624);
  EXPECT_EQ(linear_scratch(2048, 10752), 32 * kMiB + std::int64_t{29} * 10752 * 128 * 4);
}

// 4,096 rows of 4,096: 64 groups, for each has at least 16 numbers a thread; it asked for 134,217,728 bytes.
TEST(Primitives, GroupsHaveSomethingToSum) { EXPECT_EQ(linear_scratch(4096, 4096), 32 * kMiB + 134'217'728); }

// Two products forward and four backward; each moves the scores once, besides rows of heads.
TEST(Primitives, UnfusedAttentionMovesItsScores) {
  const auto call = [](bool causal) {
    return attention(2, 2048, {.heads = 16, .sequence = 1024, .causal = causal, .fused = false}, DType::F16)
        ->program[0];
  };
  const std::int64_t scores = 2 * 16 * 1024 * 1024 * 2, row = 2 * 1024 * 2048 * 2, mask = 2 * 1024 * 1024;
  const std::int64_t product = std::int64_t{2} * 2 * 16 * 1024 * 1024 * 128;
  const auto forward = kernels_of(call(true), Direction::Forward),
             backward = kernels_of(call(true), Direction::Backward);
  EXPECT_EQ(sum_of(forward, &Kernel::flops), 2 * product);
  EXPECT_EQ(sum_of(backward, &Kernel::flops), 4 * product);
  // Scores: written, masked, through the softmax, read; three operands' copies and the result's, two products' rows.
  EXPECT_EQ(sum_of(forward, &Kernel::bytes), 6 * scores + mask + (4 * 2 + 2 * 2) * row);
  EXPECT_EQ(sum_of(kernels_of(call(false), Direction::Forward), &Kernel::bytes), 4 * scores + (4 * 2 + 2 * 2) * row);
  // Four products' scores, three of the softmax's gradient; four copies, two scalings, four products' rows; and the
  // gradients of query, key and value joined.
  EXPECT_EQ(sum_of(backward, &Kernel::bytes), 7 * scores + (4 * 2 + 2 * 2 + 4 * 2) * row + 2 * 3 * row);
}

}  // namespace
}  // namespace tandem
