// What a simulation's result depends on beside its settings. Must not know what is simulated.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "sweep/plan.hpp"
#include "sweep/store.hpp"

namespace tandem {

// The base with its machine, the program that simulates, and all profiles and models that settings may name.
SweepIdentity identity_of(const Scenario& base, const SweepPlan& plan, const std::string& simulator);

}  // namespace tandem
