// The clock of a device that lowers it to keep to its power limit: what it drew of late says how much longer kernels
// that need the clock take. Must not know commands or lanes.
#pragma once

#include "core/machine/cost_model.hpp"

namespace tandem {

class DeviceClock {
 public:
  explicit DeviceClock(const PowerLimit& limit) : limit_(limit) {}

  // At `now_ns`, when the device is about to begin: how many times as long as at the full clock kernels take that need
  // it. The device waited since the last call of ran().
  double stretch(double now_ns);
  // Until `now_ns`, since the last call: kernels of such a draw.
  void ran(double now_ns, const CostModel::Draw& draw);

 private:
  void average(double now_ns, double clocked, double other);

  PowerLimit limit_;
  double until_ns_ = 0;
  // Averages over the window: what the kernels that need the clock would draw at the full one, and what else is drawn.
  double clocked_ = 0, other_ = 0;
};

}  // namespace tandem
