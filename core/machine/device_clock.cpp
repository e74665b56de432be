#include "core/machine/device_clock.hpp"

#include <algorithm>
#include <cmath>

#include "core/machine/clock_stretch.hpp"

namespace tandem {

DeviceClock::DeviceClock(const std::vector<PowerLimit>& limits) {
  for (const PowerLimit& limit : limits)
    if (limit.window_ns > 0) averages_.push_back({limit, 0, 0});
}

void DeviceClock::Average::add(double ns, double now_clocked, double now_other) {
  const double kept = std::exp(-ns / static_cast<double>(limit.window_ns));
  clocked = kept * clocked + (1 - kept) * now_clocked;
  other = kept * other + (1 - kept) * now_other;
}

double DeviceClock::stretch(double now_ns) {
  double stretch = 1;
  for (Average& average : averages_) {
    average.add(now_ns - until_ns_, 0, average.limit.idle);
    stretch = std::max(stretch, clock_stretch(average.clocked, average.other));
  }
  until_ns_ = now_ns;
  return stretch;
}

void DeviceClock::ran(double now_ns, const CostModel::Activity& activity) {
  for (Average& average : averages_) {
    const PowerLimit& limit = average.limit;
    average.add(now_ns - until_ns_, limit.gemm * activity.products + limit.attention * activity.attention,
                limit.memory * (1 - activity.clocked));
  }
  until_ns_ = now_ns;
}

}  // namespace tandem
