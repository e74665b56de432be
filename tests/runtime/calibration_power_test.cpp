// From how much longer kernels take without a pause to what they draw, by hand.
#include <gtest/gtest.h>

#include "calibration/power_times.hpp"

namespace tandem {
namespace {

TEST(CalibrationPower, ADeviceThatNeverSlowsDownHasNoLimit) {
  EXPECT_EQ(power_limit({1.005, 1.0, 0.5, 1.0}, 1.0, kBriefWindowNs).window_ns, 0);
}

// Products at 0.9 of the peak draw 1.2^2 of the limit. By turns with memory kernels, of 0.5 + 0.5 of the time at first,
// they take 1.1 times as long: 0.55 x 1.44 / 1.21 of 1.05 is theirs, the rest drawn in the other 0.5.
TEST(CalibrationPower, WhatIsLeftIsDrawnByMemoryKernels) {
  const PowerLimit limit = power_limit({1.2, 1.05, 0.5, 1.1}, 0.9, kBriefWindowNs);
  EXPECT_NEAR(limit.gemm, 1.44 / 0.9, 1e-12);
  EXPECT_NEAR(limit.attention, 1.1025, 1e-12);
  EXPECT_NEAR(limit.memory, (1.05 - 0.55 * 1.44 / 1.21) / 0.5, 1e-12);
  EXPECT_EQ(limit.window_ns, kBriefWindowNs);
}

// At 0.9 of the peak, 1.2^2 of the limit; where nothing takes longer, at most the limit.
TEST(CalibrationPower, ProductsOfAnotherPrecisionDrawByTheSameRule) {
  EXPECT_NEAR(product_draw(1.2, 0.9), 1.44 / 0.9, 1e-12);
  EXPECT_EQ(product_draw(1.005, 0.9), 1);
  const auto [times, first_ns] =
      time_product_power({nullptr, false, DType::F32, 1}, {{{64, 64, 64}}, {2, 16, 16}, 1 << 14, 0.02, 0.06});
  EXPECT_GE(times, 1);
  EXPECT_GT(first_ns, 0);
}

TEST(CalibrationPower, SeriesRunOnAThread) {
  const PowerSeries series =
      time_power({nullptr, false, DType::F32, 1}, {{{64, 64, 64}, {32, 64, 128}}, {2, 16, 16}, 1 << 14, 0.02, 0.1});
  for (const PowerTimes& times : {series.brief, series.sustained}) {
    for (const double factor : {times.gemm, times.attention, times.mixed_gemm}) EXPECT_GE(factor, 1);
    EXPECT_GT(times.product_share, 0);
  }
  EXPECT_GT(series.gemms_ns, 0);
}

}  // namespace
}  // namespace tandem
