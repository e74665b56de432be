// What a framework keeps in memory beside what the policy decides, in bytes. Must not know pools or runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/scenario/scenario.hpp"

namespace tandem {

// By tier, of one rank: the product's bytes a parameter, times the parameters that the rank updates (of a partitioned
// model its part), and what a product that is named has more than the policy. Builds the workload, whose options must
// be right: throws what it throws, and what product_memory() does.
std::array<std::int64_t, kTierCount> bytes_kept_beside(const Scenario& scenario);

// "Tandem's own run", or "as DeepSpeed 0.16 would".
std::string run_of_whom(const Scenario& scenario);

}  // namespace tandem
