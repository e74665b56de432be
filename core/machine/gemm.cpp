#include "core/machine/gemm.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kShort = 128, kLong = 256;

// Over what it holds, how much larger a number of rows or columns gets by whole tiles.
double rounded_share(std::int64_t n, std::int64_t tile) {
  return static_cast<double>((n + tile - 1) / tile * tile) / static_cast<double>(n);
}

}  // namespace

// A product of fewer rows or columns than a tile has is made with smaller ones: its efficiency is measured by its
// flops.
double gemm_flops(const Kernel& kernel, std::int32_t processors) {
  const auto flops = static_cast<double>(kernel.flops);
  if (processors == 0 || kernel.m < kLong || kernel.n < kLong) return flops;
  return flops *
         (rounded_share(kernel.m, kShort) * rounded_share(kernel.n, kLong) +
          rounded_share(kernel.m, kLong) * rounded_share(kernel.n, kShort)) /
         2;
}

}  // namespace tandem
