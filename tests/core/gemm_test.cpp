// What a matrix product keeps a GPU busy for, by hand: rounds of tiles on 132 multiprocessors.
#include "core/machine/gemm.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr std::int32_t kProcessors = 132;
// An endless product in the best tiles, of 128 by 320, over one without edges.
constexpr double kBest = 1 + 10.0 * (128 + 320) / (128 * 320);

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1) {
  return {.kind = KernelKind::Gemm, .m = m, .n = n, .k = k, .flops = count * 2 * m * n * k};
}
double busy(const Kernel& kernel) { return gemm_flops(kernel, kProcessors); }

TEST(Gemm, WithoutANumberOfProcessorsItsFlopsCount) {
  EXPECT_EQ(gemm_flops(product(500, 1000, 64), 0), 2.0 * 500 * 1000 * 64);
}

// 12 by 11 tiles of 128 by 320, one for each processor; each takes 120 products more than its inner dimension.
TEST(Gemm, FullTilesTakeTheirFlops) {
  const Kernel kernel = product(12 * 128, 11 * 320, 4096);
  EXPECT_DOUBLE_EQ(busy(kernel), static_cast<double>(kernel.flops) * (4096 + 120) / 4096);
}

// 231 tiles are a round and three quarters: half of the quarter that is missing counts.
TEST(Gemm, TheLastRoundCountsHalfOfWhatItLacks) {
  EXPECT_DOUBLE_EQ(busy(product(128, 320, 64, 231)), 1.875 * busy(product(128, 320, 64, 132)));
}

TEST(Gemm, RowsAndColumnsAreTheSame) { EXPECT_DOUBLE_EQ(busy(product(1024, 384, 512)), busy(product(384, 1024, 512))); }

// One tile of 64 by 64 in two parts, each of 2,048 and 120 products: all processors wait for them.
TEST(Gemm, AFewTilesAreCutAlongTheInnerDimension) {
  EXPECT_DOUBLE_EQ(busy(product(64, 64, 4096)), 132.0 * 2 * (64 * 64 + 10 * 128) * (2048 + 120) / kBest);
}

TEST(Gemm, SeveralOfOneSizeShareTheirRounds) {
  EXPECT_DOUBLE_EQ(busy(product(128, 320, 64, 132)), busy(product(12 * 128, 11 * 320, 64)));
}

}  // namespace
}  // namespace tandem
