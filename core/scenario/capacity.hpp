// A tier's capacity and a body's threads under the scenario's limits, and by how many ranks the host is shared. Must
// not know pools or runs.
#pragma once

#include <cstdint>
#include <limits>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Of one device, or of the whole host or disk: what the machine has, under the scenario's limits.
std::int64_t tier_memory_bytes(const Scenario& scenario, Tier tier);
// The same without what the scenario's product keeps of it: what a run can place.
std::int64_t tier_capacity_bytes(const Scenario& scenario, Tier tier);

// Data-parallel ranks of one host, which share it equally.
std::int64_t ranks_on_host(const Scenario& scenario);

// Of a rank's bytes in the host tier, so many from the first on are pinned; copies of what lies beyond go at pageable
// rates.
inline constexpr std::int64_t kAllPinned = std::numeric_limits<std::int64_t>::max();
std::int64_t pinned_capacity_bytes(const HardwareProfile& machine, std::int64_t ranks_of_host);

// Threads that a body may use: what LibTorch's temporaries that are kept one a thread are sized for.
std::int64_t body_threads(const Scenario& scenario);

}  // namespace tandem
