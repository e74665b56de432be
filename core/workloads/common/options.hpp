// Checks of options that all workloads share. Must not know families or graphs.
#pragma once

#include <cstdint>

#include "core/model/families/common/checks.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Options that every training family shares: batch, micro_batches, devices, recompute, and the optimizer's.
void require_training_options(const Scenario& scenario);

// For families that have no loss.
void require_no_validation(const Scenario& scenario);

}  // namespace tandem
