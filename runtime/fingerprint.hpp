// Whether the machine at hand is the one that a hardware profile was measured on. Must not know scenarios, nor measure
// anything.
#pragma once

#include <string>

#include "core/machine/profile.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

// What this machine says of itself. `device` null: the CPU stands in for one. Throws DeviceError when the device does.
Fingerprint fingerprint_here(Device* device);

// One line for people where the machine differs from the profile's, or was busy when it was measured; "" otherwise:
// also where the profile has no fingerprint, and where the CPU stands in for the GPU of the profile, which is a choice
// and no mistake.
std::string fingerprint_warning(const HardwareProfile& profile, Device* device);
// The same for a probe that was run here.
std::string probe_warning(const HardwareProfile& profile, const Probe& here, Device* device);

}  // namespace tandem
