// `tandem calibrate --for`: the ops of scenarios, measured into a profile that is there. Must not know how ops are
// timed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/executors/device.hpp"

namespace tandem {

struct ForFlags {
  std::vector<std::string> files, overrides;  // scenarios; --set
  std::string base, output;                   // profiles; base: a name, too
  std::string device;                         // as of --device
  double seconds = 5;                         // of each scenario's steps
  bool quiet = false;
};

// Writes `output`: the base with the ops of all scenarios that could be run. Says which ops were not measured. Returns
// an exit code: that of a scenario that does not fit, where there is one. Throws ConfigError for bad input and a base
// of another machine, DeviceError as runs do.
int calibrate_for(const ForFlags& flags, const std::shared_ptr<Device>& device);

}  // namespace tandem
