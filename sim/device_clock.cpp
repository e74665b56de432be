#include "sim/device_clock.hpp"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

// Of the limit, for kernels that need the clock, however much the others draw.
constexpr double kLeastShare = 0.1;

}  // namespace

void DeviceClock::average(double now_ns, double clocked, double other) {
  const double kept = std::exp((until_ns_ - now_ns) / static_cast<double>(limit_.window_ns));
  clocked_ = kept * clocked_ + (1 - kept) * clocked;
  other_ = kept * other_ + (1 - kept) * other;
  until_ns_ = now_ns;
}

// Power goes with the square of the clock, near the full one: on an H200, products draw 1.5 times the limit and take
// 1.22 times as long without a pause, and 1.10 times where they pause for a quarter of the time.
double DeviceClock::stretch(double now_ns) {
  if (limit_.window_ns == 0) return 1;
  average(now_ns, 0, limit_.idle);
  return std::max(1.0, std::sqrt(clocked_ / std::max(kLeastShare, 1 - other_)));
}

void DeviceClock::ran(double now_ns, const CostModel::Draw& draw) {
  if (limit_.window_ns == 0) return;
  average(now_ns, draw.clocked_share * draw.clocked, (1 - draw.clocked_share) * draw.other);
}

}  // namespace tandem
