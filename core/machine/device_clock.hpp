// The clock of a device that lowers it to keep to its power limits: what it drew of late says how much longer kernels
// that need the clock take. Must not know commands or lanes.
#pragma once

#include <vector>

#include "core/machine/cost_model.hpp"

namespace tandem {

class DeviceClock {
 public:
  // All limits hold at once, each over its own window; those without a window never do.
  explicit DeviceClock(const std::vector<PowerLimit>& limits);

  // At `now_ns`, when the device is about to begin: how many times as long as at the full clock kernels take that need
  // it. The device waited since the last call of ran().
  double stretch(double now_ns);
  // Until `now_ns`, since the last call: an op of such an activity.
  void ran(double now_ns, const CostModel::Activity& activity);

 private:
  struct Average {
    PowerLimit limit;
    // Over the window: what the kernels that need the clock would draw at the full one, and what else is drawn.
    double clocked = 0, other = 0;
    void add(double ns, double now_clocked, double now_other);
  };

  std::vector<Average> averages_;
  double until_ns_ = 0;
};

}  // namespace tandem
