// Tries modules on the other processor, by simulations, where they look able to pay there. Must not know how the result
// is shown.
#pragma once

#include "apps/simulations.hpp"
#include "report/workload_report.hpp"

namespace tandem {

// Fills in each group's trials and what is suggested of it, and the report's best. `report.groups` have their costs.
// `simulations` have the scenario and the settings of all.
void try_placements(const Network& network, Simulations& simulations, bool quiet, WorkloadReport& report);

}  // namespace tandem
