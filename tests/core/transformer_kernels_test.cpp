// What a transformer's kernels read and write, by arithmetic.
#include <gtest/gtest.h>

#include "core/workloads/common/transformer.hpp"

namespace tandem {
namespace {

// Of 4 x 256 tokens of 512 numbers in bf16, a norm goes forward over the input and the output, and backward over the
// gradient, the input and the input's gradient; two statistics in fp32 a token lie beside them.
TEST(TransformerKernels, ANormMovesItsRows) {
  TransformerSizes s;
  s.batch = 4, s.sequence = 256, s.hidden = 512, s.heads = 8;
  s.type = DType::BF16;
  constexpr std::int64_t kRows = 4 * 256 * 512 * 2, kStatistics = 2 * 4 * 256 * 4;
  EXPECT_EQ(norm_forward_kernels(s).front().bytes, 2 * kRows + kStatistics);
  EXPECT_EQ(norm_backward_kernels(s).front().bytes, 3 * kRows + kStatistics);
}

}  // namespace
}  // namespace tandem
