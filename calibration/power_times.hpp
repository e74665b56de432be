// What a device draws over its power limit, found from how much longer kernels take when they go on for long enough
// that it must lower its clock. Must not know ops; no power meter is read.
#pragma once

#include "calibration/kernel_times.hpp"
#include "core/machine/profile.hpp"

namespace tandem {

struct PowerDesign {
  GemmSize gemm;
  AttentionSize attention;
  std::int64_t additions = 0;  // elements of a memory kernel
  double seconds = 0;          // of each series, after a rest as long; 0: not measured
};

// How many times as long kernels take after some time without a pause as at first.
struct PowerTimes {
  double gemm = 1, attention = 1;
  // A series of products and memory kernels by turns: the share of the time that products take at first, and how many
  // times as long they take in the end, where memory kernels take as long as ever.
  double product_share = 0, mixed_gemm = 1;
};
PowerTimes time_power(const KernelSite& site, const PowerDesign& design);

// None where nothing takes longer.
PowerLimit power_limit(const PowerTimes& times);

}  // namespace tandem
