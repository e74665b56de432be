// What holds a training step: the device's own work, or what it waits for most. Must not know formats or worlds.
#pragma once

#include <map>
#include <string>

namespace tandem {

struct Holder {
  std::string cause;  // "compute", or of the waits of Analysis::exposed_s
  double share = 0;   // of the step
};

// `compute_s` and `exposed_s`: as of Analysis. The device's own work holds a step of which it is the half.
Holder holder(double compute_s, const std::map<std::string, double>& exposed_s);

}  // namespace tandem
