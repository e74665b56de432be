// A machine's probe: a few figures, measured within seconds on one workbench, that tell whether a machine is still (or
// at all) the one that was calibrated. Must not know profiles, nor what the figures are compared with.
#pragma once

#include <cstdint>
#include <memory>

#include "calibration/gpu_design.hpp"
#include "calibration/kernel_times.hpp"
#include "core/machine/fingerprint.hpp"

namespace tandem {

struct ProbeDesign {
  KernelSite site;  // of the product
  GemmSize product;
  Trial network;  // whose optimizer steps are timed on the CPU
  BodyLibrary (*library)() = &torch_library;
  std::int64_t copy_bytes = 0;
};
// The CPU as a stand-in for a device; a device as `design` has it.
ProbeDesign cpu_probe(std::int32_t cores);
ProbeDesign device_probe(const std::shared_ptr<Device>& device, const DeviceDesign& design);
// Of this machine, as calibration takes it: null stands for the CPU.
ProbeDesign probe_of(const std::shared_ptr<Device>& device);

// Throws DeviceError when the device does.
Probe run_probe(const ProbeDesign& design);

// The figures of two probes of one machine as those of one: their means, and the whole range of both as the spread.
Probe joined(const Probe& a, const Probe& b);

}  // namespace tandem
