// How fast this machine is at the moment, as far as measured runs want to know. Calibration's benches measure it and
// define these functions (calibration/machine_speed.cpp): a program that measures runs links both. Must not know
// profiles, nor what the figures are compared with.
#pragma once

#include <memory>
#include <optional>

#include "core/machine/fingerprint.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

// The figures that tell whether a machine is the one that was calibrated; of the CPU where `device` is null. Takes
// seconds. Throws DeviceError when the device does.
Probe probe_now(const std::shared_ptr<Device>& device);

// Parameters/s of the CPU's update by as many threads as a run has that may use `cores`, in memory as it has it. On a
// host that others share, it changes from minute to minute. None without a device, or where one is lost or its memory
// is used up.
std::optional<double> update_rate_now(std::int32_t cores, Device* device);

}  // namespace tandem
