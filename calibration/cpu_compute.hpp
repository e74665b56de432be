// What modules take that the CPU computes beside a device (policy.cpu_modules): kernels and bodies, timed on the CPU's
// compute lane. Must not know which device there is.
#pragma once

#include <memory>
#include <vector>

#include "calibration/measure.hpp"

namespace tandem {

// The trial's modules on the CPU's compute lane. As time_ops otherwise.
std::vector<OpTime> time_cpu_modules(const Trial& trial, int least_passes, double budget_ns, const BenchDevice& device);

// HardwareProfile::cpu_compute of a machine whose cores and host memory the profile has. Says how well it gives back
// what was held out.
std::shared_ptr<const HardwareProfile> measure_cpu_compute(const CpuComputeDesign& design,
                                                           const HardwareProfile& machine, const BenchDevice& device,
                                                           Notes& notes);

}  // namespace tandem
