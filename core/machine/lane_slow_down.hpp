// What busy lanes take from a lane beyond shared bandwidths: cores and caches. The one model of it: calibration judges
// it, simulation applies it. Must not know commands, or who measured the profile.
#pragma once

#include <cstdint>

#include "core/machine/profile.hpp"

namespace tandem {

// The factor on the duration of a command of `lane` while the lanes of the bit set `busy` are (`lane` among them).
double lane_slow_down(const HardwareProfile& profile, Engine lane, std::uint16_t busy);

}  // namespace tandem
