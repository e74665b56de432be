// How much longer commands take while other lanes are busy: host memory and bus that they share, and what busy lanes
// take from each other beyond that. The profile's word on it, for estimates; simulation applies the parts one by one.
// Must not know commands, or who measured the profile.
#pragma once

#include <cstdint>

#include "core/machine/host_memory.hpp"

namespace tandem {

// What updates on the CPU, which alone take so much of the host's memory, and copies each way take of it by themselves.
MemoryRates memory_rates_alone(const HardwareProfile& profile, double cpu_optimizer_bytes_per_s);

// The factor on the duration of a command of `lane` while all lanes of the bit set `busy` are (`lane` among them).
// `alone`: what each of them takes of the host's memory by itself.
double slow_down(const HardwareProfile& profile, const MemoryRates& alone, Engine lane, std::uint16_t busy);

}  // namespace tandem
