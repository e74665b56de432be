// Where a network is cut for a pipeline. Must not know ranks or schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step/plan.hpp"

namespace tandem {

// The piece of each stage of the plan: stages in a row, such that the longest piece, forward and backward, is as short
// as can be. Weights that are held for a stage are in its piece. Throws ConfigError where there are fewer stages than
// pieces.
std::vector<std::int32_t> pieces_of(const TrainingPlan& plan, std::int32_t pieces);

}  // namespace tandem
