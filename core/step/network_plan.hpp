// The plan of a network: which passes its modules have, what each keeps, and where each operand of a pass comes from.
// Must not know what modules compute.
#pragma once

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// Its schedule takes each backward in two: plans have what that takes (StageSpec::backward_inputs).
bool goes_back_in_two(const Scenario& scenario);

// `or_cpu`: passes may run on the CPU as well, whatever their module says: their workspace is enough for both.
TrainingPlan network_plan(const Network& network, const Scenario& scenario, bool or_cpu = false);

}  // namespace tandem
