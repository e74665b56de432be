// A latency and a rate from times by size.
#include "calibration/rank_times.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

constexpr double kSteps = 2, kShare = 1.5, kNsPerS = 1e9;

double time_of(const Line& line, std::int64_t bytes) {
  return kSteps * line.latency_ns + kShare * static_cast<double>(bytes) / line.bytes_per_s * kNsPerS;
}

TEST(RankTimes, AnExactLineIsFound) {
  const Line line{20'000, 150e9};
  std::vector<SizedTime> times;
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4) times.push_back({bytes, time_of(line, bytes), 0});
  const Line found = fit_line(times, kSteps, kShare);
  EXPECT_NEAR(found.latency_ns, line.latency_ns, 1e-6 * line.latency_ns);
  EXPECT_NEAR(found.bytes_per_s, line.bytes_per_s, 1e-6 * line.bytes_per_s);
}

// Relative errors count: of times that are all 10% off, by turns more and less, no line is farther off than that.
TEST(RankTimes, SmallAndLargeCountAlike) {
  const Line line{30'000, 20e9};
  std::vector<SizedTime> times;
  double sign = 1;
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4, sign = -sign)
    times.push_back({bytes, time_of(line, bytes) * (1 + 0.1 * sign), 0});
  const Line found = fit_line(times, kSteps, kShare);
  EXPECT_NEAR(found.latency_ns, line.latency_ns, 0.1 * line.latency_ns);
  EXPECT_NEAR(found.bytes_per_s, line.bytes_per_s, 0.1 * line.bytes_per_s);
}

// No run takes less than nothing to begin.
TEST(RankTimes, ALatencyIsPositive) {
  const Line found = fit_line({{1'000, 100, 0}, {1'000'000, 300'000, 0}}, 1, 1);
  EXPECT_GE(found.latency_ns, 1);
  EXPECT_GT(found.bytes_per_s, 0);
}

}  // namespace
}  // namespace tandem
