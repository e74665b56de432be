// A run by estimates, to see beforehand whether a choice of homes fits: pools, evictions and refusals are those of the
// run to come. A part of policies; must not know which one.
#pragma once

#include <memory>

#include "core/scheduler/policy.hpp"

namespace tandem {

// True if the first steps of the scenario fit under the policy.
bool fits_in_trial(const Scenario& scenario, std::unique_ptr<Policy> policy);

}  // namespace tandem
