// The whole calibration: measures this machine through the runtime and fits a hardware profile to it.
// Must not know flags or files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibration/conditions.hpp"
#include "calibration/fit_profile.hpp"
#include "runtime/executors/device.hpp"
#include "runtime/machine_probe.hpp"

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
  std::string source, description;  // what was measured: processors and clocks, for the profile's own lines
  MachineFacts machine;
  Conditions conditions;
  std::vector<Residual> residuals;
  std::vector<std::string> remarks;  // what a reader of the profile should know: noise, outliers, what is missing
};

// The CPU as a stand-in for a device. Progress and figures go to stderr unless quiet. Throws DeviceError when something
// cannot be measured.
Calibration calibrate_cpu(const CalibrationOptions& options);

struct DeviceDesign;
// A device with memory of its own, as `design` has it (gpu_design.hpp). Otherwise the same.
Calibration calibrate_device(const CalibrationOptions& options, const std::shared_ptr<Device>& device,
                             const DeviceDesign& design);

// "block.forward: 12 ops, median error 1.2%, largest 4%": how well the fit gives back what was measured.
std::vector<std::string> residual_report(const std::vector<Residual>& residuals);
// The same op by op, as CSV: measured and predicted time, and what its kernels would take as they do alone.
std::string residual_csv(const std::vector<Residual>& residuals);

}  // namespace tandem
