// What a framework keeps in memory beside what the policy decides, in bytes. Must not know pools or runs.
#pragma once

#include <array>
#include <cstdint>

#include "core/scenario/scenario.hpp"

namespace tandem {

// By tier, of one rank: the product's bytes a parameter, times the parameters that the rank updates (of a partitioned
// model its part). Builds the workload, whose options must be right: throws what it throws.
std::array<std::int64_t, kTierCount> bytes_kept_beside(const Scenario& scenario);

}  // namespace tandem
