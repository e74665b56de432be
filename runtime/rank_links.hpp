// Which other ranks a rank sends to and receives from. Must not know devices.
#pragma once

#include <vector>

#include "core/machine/cost_model.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {

// Of transfer_groups(), those that the run uses: links between GPUs take memory, a GB each. Of a pipeline, what its
// first step sends, as all others do.
std::vector<RankGroup> links_of(const Scenario& scenario, const CostModel& estimate, Rank rank);

}  // namespace tandem
