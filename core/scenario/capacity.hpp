// A tier's capacity and a body's threads under the scenario's limits, and by how many ranks the host is shared. Must
// not know pools or runs.
#pragma once

#include <cstdint>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Of one device, or of the whole host or disk: what the machine has, under the scenario's limits.
std::int64_t tier_memory_bytes(const Scenario& scenario, Tier tier);
// The same without what the scenario's product keeps of it: what a run can place.
std::int64_t tier_capacity_bytes(const Scenario& scenario, Tier tier);

// Data-parallel ranks of one host, which share it equally.
std::int64_t ranks_on_host(const Scenario& scenario);

// Threads that a body may use: what LibTorch's temporaries that are kept one a thread are sized for.
std::int64_t body_threads(const Scenario& scenario);

}  // namespace tandem
