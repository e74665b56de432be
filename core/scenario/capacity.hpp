// A tier's capacity under the scenario's limits. Must not know ranks, pools or runs.
#pragma once

#include <cstdint>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Of one device, or of the whole host or disk.
std::int64_t tier_capacity_bytes(const Scenario& scenario, Tier tier);

}  // namespace tandem
