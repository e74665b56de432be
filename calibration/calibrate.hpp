// The whole calibration: measures this machine through the runtime and fits a hardware profile to it.
// Must not know flags or files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibration/fit_profile.hpp"
#include "calibration/machine_probe.hpp"

namespace tandem {

struct CalibrationOptions {
  std::string name;            // of the profile
  std::string scratch_folder;  // where the disk tier's rates are measured
  bool quick = false;
  bool quiet = false;
  std::function<void(double)> progress;  // called with the share of the work that is done; may be empty
};

struct Calibration {
  HardwareProfile profile;
  MachineFacts machine;
  std::vector<Residual> residuals;
  std::vector<std::string> remarks;  // what a reader of the profile should know: noise, outliers, what is missing
};

// Progress and figures go to stderr unless quiet. Throws DeviceError when something cannot be measured.
Calibration calibrate_cpu(const CalibrationOptions& options);

// "block.forward: 12 ops, median error 1.2%, largest 4%": how well the fit gives back what was measured.
std::vector<std::string> residual_report(const std::vector<Residual>& residuals);

}  // namespace tandem
