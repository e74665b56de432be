// What lanes get of the host's memory, and of the bus to it, when together they want more than there is. The one model
// of it: calibration fits it, simulation applies it. Must not know commands, or who measured the profile.
#pragma once

#include <array>

#include "core/machine/profile.hpp"

namespace tandem {

// By lane, bytes/s of the host's memory; 0: the lane does not use it.
using MemoryRates = std::array<double, kEngineCount>;

// What each lane gets if alone it would take wanted[lane]. Copies first share the bus. Then, where the rest costs more
// than the memory's bandwidth, by what a byte of each lane costs, each lane gets in proportion to what it wants times
// its weight (`memory_weights`; both are 1 where not given), at most all of it: weighted max-min fairness, with what
// lanes want as their weights. A memory controller serves requests, and a lane that wants more has more of them
// waiting; an update, whose streams are read and written by turns, takes more of its time for a byte than a copy does.
// A profile without any weights says nothing of that: lanes get equal shares.
MemoryRates share_host_memory(const HardwareProfile& profile, MemoryRates wanted);

}  // namespace tandem
