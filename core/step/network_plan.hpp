// The plan of a network: which passes its modules have, what each keeps, and where each operand of a pass comes from.
// Must not know what modules compute.
#pragma once

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/plan.hpp"

namespace tandem {

TrainingPlan network_plan(const Network& network, const Scenario& scenario);

}  // namespace tandem
