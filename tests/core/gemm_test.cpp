// What a matrix product keeps a GPU busy for, by hand: tiles of 128 by 256.
#include "core/machine/gemm.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr std::int32_t kProcessors = 132;

Kernel product(std::int64_t m, std::int64_t n) {
  return {.kind = KernelKind::Gemm, .m = m, .n = n, .k = 64, .flops = 2 * m * n * 64};
}
double share(std::int64_t m, std::int64_t n) {
  const Kernel kernel = product(m, n);
  return gemm_flops(kernel, kProcessors) / static_cast<double>(kernel.flops);
}

TEST(Gemm, FullTilesTakeTheirFlops) {
  EXPECT_EQ(share(512, 1024), 1);
  EXPECT_EQ(gemm_flops(product(500, 1000), 0), 2.0 * 500 * 1000 * 64) << "processors not known";
}

// 384 columns are three short sides, or a long one and a half: 4/3 of them by whole tiles.
TEST(Gemm, TilesAtTheEdgeTakeAsLongAsFullOnes) {
  EXPECT_DOUBLE_EQ(share(1024, 384), (4.0 / 3 + 1) / 2);
  EXPECT_DOUBLE_EQ(share(384, 1024), share(1024, 384));
  EXPECT_DOUBLE_EQ(share(320, 1024), (384.0 / 320 + 512.0 / 320) / 2);
}

TEST(Gemm, SmallerProductsHaveSmallerTiles) { EXPECT_EQ(share(64, 4096), 1); }

}  // namespace
}  // namespace tandem
