// Whether a policy suits the ways in which a scenario's ranks share the work. Must not know which policies there are.
#pragma once

#include "core/scenario/scenario.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

// Throws ConfigError where it does not.
void require_suits_ranks(const Scenario& scenario, const PolicyTraits& traits);

}  // namespace tandem
