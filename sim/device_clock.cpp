#include "sim/device_clock.hpp"

#include <cmath>

#include "core/machine/clock_stretch.hpp"

namespace tandem {

void DeviceClock::average(double now_ns, double clocked, double other) {
  const double kept = std::exp((until_ns_ - now_ns) / static_cast<double>(limit_.window_ns));
  clocked_ = kept * clocked_ + (1 - kept) * clocked;
  other_ = kept * other_ + (1 - kept) * other;
  until_ns_ = now_ns;
}

double DeviceClock::stretch(double now_ns) {
  if (limit_.window_ns == 0) return 1;
  average(now_ns, 0, limit_.idle);
  return clock_stretch(clocked_, other_);
}

void DeviceClock::ran(double now_ns, const CostModel::Draw& draw) {
  if (limit_.window_ns == 0) return;
  average(now_ns, draw.clocked_share * draw.clocked, (1 - draw.clocked_share) * draw.other);
}

}  // namespace tandem
