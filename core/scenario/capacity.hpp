// A tier's capacity under the scenario's limits, and by how many ranks the host's is shared. Must not know pools or
// runs.
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

}  // namespace tandem
