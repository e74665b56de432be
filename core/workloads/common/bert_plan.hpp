// The plan of a BERT style encoder. Must not know steps or policies.
#pragma once

#include "core/scenario/scenario.hpp"
#include "core/workloads/common/plan.hpp"

namespace tandem {

TrainingPlan bert_plan(const Scenario& scenario);

}  // namespace tandem
