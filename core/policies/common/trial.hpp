// A run by estimates, to see beforehand whether a choice of homes fits: pools, evictions and refusals are those of the
// run to come. A part of policies; must not know which one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/scheduler/policy.hpp"

namespace tandem {

// True if the first steps of the scenario fit under the policy.
bool fits_in_trial(const Scenario& scenario, std::unique_ptr<Policy> policy);

// What so many training steps from `first_step` on take, by estimates that know of no contention; none where they do
// not fit.
std::optional<std::int64_t> trial_ns(const Scenario& scenario, std::unique_ptr<Policy> policy, std::int32_t first_step,
                                     std::int32_t steps);

}  // namespace tandem
