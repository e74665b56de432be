// What a profile says of lanes beside each other, in the terms in which calibration measures it. Must not know how a
// simulator applies it.
#pragma once

#include <vector>

#include "calibration/lane_times.hpp"
#include "calibration/op_times.hpp"
#include "core/machine/host_memory.hpp"

namespace tandem {

// Bytes/s of the host's memory that lanes take alone: the optimizer's, and both copies'.
MemoryRates host_memory_rates(const std::vector<OpTime>& ops, const HardwareProfile& profile);

// The factor on the duration of the slow-down's lane while the others are busy.
double modelled_slow_down(const SlowDown& s, const std::vector<OpTime>& ops, const HardwareProfile& profile);

}  // namespace tandem
