// The clock of a device that keeps to a power limit, by hand.
#include "core/machine/device_clock.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tandem {
namespace {

constexpr double kMs = 1e6;
constexpr PowerLimit kLimit{1.44, 1.0, 0.8, 0.2, 40'000'000};
constexpr CostModel::Activity kProducts{1, 1, 0}, kMemory{0, 0, 0};

// Runs `on` ms of `activity`, then waits for `off` ms, until `ms` have passed. Returns the stretch at the end.
double after(DeviceClock& clock, double ms, double on, double off, const CostModel::Activity& activity) {
  double stretch = 1;
  for (double at = 0; at < ms; at += on + off) {
    stretch = clock.stretch(at * kMs);
    clock.ran((at + on) * kMs, activity);
  }
  return stretch;
}

TEST(DeviceClock, WithoutALimitNothingTakesLonger) {
  DeviceClock clock({PowerLimit{}});
  EXPECT_EQ(after(clock, 1000, 1, 0, kProducts), 1);
}

TEST(DeviceClock, EndlessProductsTakeTheRootOfTheirDraw) {
  DeviceClock clock({kLimit});
  EXPECT_EQ(after(clock, 40, 1, 0, kProducts), 1) << "the average of the window is still below the limit";
  DeviceClock longer({kLimit});
  EXPECT_NEAR(after(longer, 1000, 1, 0, kProducts), 1.2, 1e-3);
}

// A third of the time is spent waiting, at 0.2: 0.96 of the limit and 0.067 are above it, by little.
TEST(DeviceClock, PausesCool) {
  DeviceClock clock({kLimit});
  EXPECT_NEAR(after(clock, 1200, 2, 1, kProducts), std::sqrt(0.96 / (1 - 0.2 / 3)), 0.01);
}

TEST(DeviceClock, MemoryKernelsDoNotGetSlower) {
  DeviceClock clock({kLimit});
  EXPECT_EQ(after(clock, 1000, 1, 0, kMemory), 1);
}

// Half the time goes to memory kernels, which leave products 0.6 of the limit, of which they would draw 0.72.
TEST(DeviceClock, ProductsBearWhatMemoryKernelsDraw) {
  DeviceClock clock({kLimit});
  EXPECT_NEAR(after(clock, 1000, 1, 0, {0.5, 0.5, 0}), std::sqrt(0.72 / 0.6), 1e-3);
}

// A lower limit over a longer time: at first the other one binds.
TEST(DeviceClock, ALimitForLongBindsLater) {
  const std::vector<PowerLimit> limits{kLimit, {1.69, 1.0, 0.9, 0.2, 300'000'000}};
  DeviceClock clock(limits), longer(limits);
  EXPECT_NEAR(after(clock, 400, 1, 0, kProducts), 1.2, 1e-3);
  EXPECT_NEAR(after(longer, 4000, 1, 0, kProducts), 1.3, 1e-3);
}

}  // namespace
}  // namespace tandem
