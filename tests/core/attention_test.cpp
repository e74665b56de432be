// What fused attention keeps a GPU busy for, by hand: FlashAttention-2's blocks of 128 rows on 132 multiprocessors.
#include "core/machine/attention.hpp"

#include <gtest/gtest.h>

#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kProcessors = 132;

Kernel forward(std::int64_t heads, std::int64_t rows, std::int64_t head_size, bool causal) {
  return attention_forward(heads, rows, rows, head_size, DType::BF16, causal);
}
Kernel backward(std::int64_t heads, std::int64_t rows, std::int64_t head_size, bool causal) {
  return attention_backward(heads, rows, rows, head_size, DType::BF16, causal);
}
double busy(const Kernel& kernel) { return attention_flops(kernel, kProcessors); }

TEST(Attention, WithoutANumberOfProcessorsItsFlopsCount) {
  const Kernel kernel = forward(8, 1024, 64, true);
  EXPECT_EQ(attention_flops(kernel, 0), static_cast<double>(kernel.flops));
}

// 1,056 heads of 8 blocks of queries, 8 for each processor: 8 blocks of keys and one to begin and end for each of 64,
// of 64 + 29 columns.
TEST(Attention, ManyBlocksTakeWhatTheyDo) {
  EXPECT_DOUBLE_EQ(busy(forward(1056, 1024, 64, false)), 2.0 * 2 * 128 * 128 * 93 * kProcessors * 64 * 9);
}

// The first block of queries sees one block of keys, the last all eight: 4.5 on average, and half of one more.
TEST(Attention, ACausalMaskLeavesBlocksOut) {
  EXPECT_NEAR(busy(forward(1056, 1024, 64, true)) / busy(forward(1056, 1024, 64, false)), 6.0 / 9, 0.02);
}

// One head of eight blocks: 124 multiprocessors have nothing to do. 17 heads are 136 blocks, four more than fill them.
TEST(Attention, TheLastRoundTakesAsLongAsAFullOne) {
  EXPECT_DOUBLE_EQ(busy(forward(1, 1024, 64, false)), busy(forward(16, 1024, 64, false)));
  EXPECT_DOUBLE_EQ(busy(forward(17, 1024, 64, false)), 2 * busy(forward(16, 1024, 64, false)));
}

// Two heads on three processors: 1 and 2 blocks, twice, and 1.5 each. The first is done at 2.5, the second at 3.5; the
// other head's begin at 0 and 2.5, and end at 2.5 and 6.
TEST(Attention, BlocksRunInOrderAsProcessorsBecomeFree) {
  EXPECT_DOUBLE_EQ(attention_flops(forward(2, 256, 64, true), 3), 2.0 * 2 * 128 * 128 * 93 * 3 * 6);
}

// 132 heads fill the GPU once, and 133 take as long as 264: one thread block a head, each with all eight blocks of
// keys.
TEST(Attention, ABackwardsLastRoundTakesAsLongAsAFullOne) {
  EXPECT_DOUBLE_EQ(busy(backward(132, 1024, 64, false)), 2.0 * 5 * 128 * 128 * 82 * kProcessors * 8 * 9.8);
  EXPECT_DOUBLE_EQ(busy(backward(133, 1024, 64, false)), 2 * busy(backward(132, 1024, 64, false)));
  EXPECT_DOUBLE_EQ(busy(backward(264, 1024, 64, false)), busy(backward(133, 1024, 64, false)));
}

// 66 heads get two thread blocks each, one of which has every other block of keys.
TEST(Attention, ABackwardOfFewHeadsIsCutByKeys) {
  EXPECT_DOUBLE_EQ(busy(backward(66, 1024, 64, false)), busy(backward(132, 1024, 64, false)) / 2);
  // Causal: keys 0, 2, 4, 6 are seen by 8, 6, 4, 2 blocks of queries, which is more than 1, 3, 5, 7 have.
  EXPECT_DOUBLE_EQ(busy(backward(66, 1024, 64, true)), 2.0 * 5 * 128 * 128 * 82 * kProcessors * (20 + 4 * 1.8));
}

}  // namespace
}  // namespace tandem
