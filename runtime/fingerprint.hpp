// Whether the machine at hand is the one that a hardware profile was measured on. Must not know scenarios, nor measure
// anything.
#pragma once

#include <string>

#include "core/machine/profile.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

// What this machine says of itself. `device` null: the CPU stands in for one. Throws DeviceError when the device does.
Fingerprint fingerprint_here(Device* device);

// How the profile is none of this machine, so that times predicted with it are not this machine's: it was measured
// elsewhere, or nowhere, or of a GPU for which the CPU stands in. "": nothing speaks against it.
std::string other_machine(const HardwareProfile& profile, Device* device);

// One line for people of that, or where the machine was busy when it was measured; "" otherwise: also where the CPU
// stands in for the GPU of the profile, which is a choice and no mistake.
std::string fingerprint_warning(const HardwareProfile& profile, Device* device);
// The same for a probe that was run here.
std::string probe_warning(const HardwareProfile& profile, const Probe& here, Device* device);

}  // namespace tandem
