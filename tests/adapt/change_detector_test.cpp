// Changes of a level are seen soon, and chance is hardly ever taken for one.
#include "adapt/change_detector.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tandem {
namespace {

// Numbers until the alarm, of at most so many.
int until_alarm(ChangeDetector& detector, std::mt19937_64& random, double level, double spread, int most) {
  std::normal_distribution<double> normal(std::log(level), spread);
  for (int i = 1; i <= most; ++i)
    if (detector.take(std::exp(normal(random)))) return i;
  return most;
}

TEST(ChangeDetectorTest, ChanceIsTakenForAChangeLessThanOnceInAThousandNumbers) {
  constexpr int kSeries = 200, kNumbers = 1000;
  for (const double spread : {0.005, 0.02, 0.05, 0.2}) {
    int alarms = 0;
    for (int series = 0; series < kSeries; ++series) {
      std::mt19937_64 random(static_cast<std::uint64_t>(series) + 1);
      ChangeDetector detector;
      for (int left = kNumbers; left > 0;) {
        const int taken = until_alarm(detector, random, 1.3, spread, left);
        if (taken < left) {
          ++alarms;
          detector.restart();
        }
        left -= taken;
      }
    }
    EXPECT_LT(alarms, kSeries) << spread;
  }
}

TEST(ChangeDetectorTest, AChangeIsSeenWithinAFewNumbers) {
  for (const double change : {0.5, 0.85, 1.15, 2.0})
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      std::mt19937_64 random(seed);
      ChangeDetector detector;
      until_alarm(detector, random, 1, 0.02, 30);
      EXPECT_LE(until_alarm(detector, random, change, 0.02, 100), 4) << change << " " << seed;
      EXPECT_NEAR(detector.level(), 1, 0.03) << "the level before";
    }
}

TEST(ChangeDetectorTest, LessThanTwoPerCentIsNoChange) {
  ChangeDetector detector;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(detector.take(1));
  for (int i = 0; i < 2000; ++i) EXPECT_FALSE(detector.take(1.019));
}

}  // namespace
}  // namespace tandem
