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

}  // namespace tandem
