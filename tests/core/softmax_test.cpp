// What a softmax over long rows moves, by hand.
#include "core/machine/softmax.hpp"

#include <gtest/gtest.h>

#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kProcessors = 132;

TEST(Softmax, WithoutANumberOfProcessorsEachOperandCountsOnce) {
  EXPECT_EQ(softmax_bytes(softmax_kernel(10, 50304, false), 0), 10 * 50304 * 8);
  EXPECT_EQ(softmax_bytes(softmax_kernel(10, 50304, true), 0), 10 * 50304 * 12);
}

// Three readings and a result are 16 bytes; caches hold what is read again of 20,480 columns, and less of 50,304.
TEST(Softmax, LongRowsAreReadAgainFromMemory) {
  EXPECT_DOUBLE_EQ(softmax_bytes(softmax_kernel(10, 20480, false), kProcessors), 10 * 20480 * 10.4);
  EXPECT_DOUBLE_EQ(softmax_bytes(softmax_kernel(10, 50304, false), kProcessors), 10 * 50304 * 18.0);
  EXPECT_DOUBLE_EQ(softmax_bytes(softmax_kernel(10, 50304, true), kProcessors), 10 * 50304 * 18.2);
}

TEST(Softmax, BetweenMeasuredRowsItIsInterpolated) {
  const double bytes = softmax_bytes(softmax_kernel(1, 28378, false), kProcessors) / 28378;  // 24,576 x (4/3)^(1/2)
  EXPECT_NEAR(bytes, (11.5 + 14.2) / 2, 0.01);
  EXPECT_DOUBLE_EQ(softmax_bytes(softmax_kernel(1, 100, false), kProcessors), 100 * 10.4);
  EXPECT_DOUBLE_EQ(softmax_bytes(softmax_kernel(1, 200000, true), kProcessors), 200000 * 17.5);
}

}  // namespace
}  // namespace tandem
