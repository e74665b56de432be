// What a device takes to decode pictures. Must not know scenarios.
#pragma once

#include <memory>

#include "calibration/measure.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

// JPEGs of three sizes, 32 at a time, into profile.input_stages: device_jpeg_decode, for one picture of them. A device
// that decodes none is told of, and leaves the profile as it is.
void measure_device_pictures(const std::shared_ptr<Device>& device, bool quick, HardwareProfile& profile, Notes& notes);

}  // namespace tandem
