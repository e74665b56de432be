// How much longer commands take while other lanes are busy: host memory and bus that they share, and what busy lanes
// take from each other beyond that. Estimates and simulation go by it. Must not know commands, or who measured the
// profile.
#pragma once

#include <array>
#include <cstdint>

#include "core/machine/host_memory.hpp"

namespace tandem {

// What updates on the CPU, which alone take so much of the host's memory, and copies each way take of it by themselves.
MemoryRates memory_rates_alone(const HardwareProfile& profile, double cpu_optimizer_bytes_per_s);

// By lane, the factor on the duration of a command while all lanes of the bit set `busy` are; 1 for the others.
// `alone`: what each takes of the host's memory by itself; 0: it takes none, or its share is not to be counted.
std::array<double, kEngineCount> slow_downs(const HardwareProfile& profile, const MemoryRates& alone,
                                            std::uint16_t busy);

// What an op on Compute takes longer for its kernels' starts while the lanes of `busy` are, as a share of its
// BodyCost::dispatch_ns; `recorded`: started again from a recording. In proportion to `factors`, slow_downs() of the
// same lanes: copies that come slower from the host's memory keep what starts a kernel waiting as much longer.
double later_starts(const HardwareProfile& profile, const std::array<double, kEngineCount>& factors, std::uint16_t busy,
                    bool recorded);

// The factor on what the submitting thread takes to launch an op's kernels while the lanes of `busy` are.
double slower_launch(const HardwareProfile& profile, std::uint16_t busy);

}  // namespace tandem
