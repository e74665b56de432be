// How long the commands that a policy chose keep the busiest resource busy while steps are timed, each at the speed it
// would have alone. Must not know the order in which they ran.
#pragma once

#include <string>

#include "analysis/compulsory.hpp"
#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

struct PolicyLoad {
  double seconds = 0;    // over all windows
  std::string resource;  // a lane's engine, "pcie" or "dram"
};

// Of a command that ran partly outside the windows, as much counts as cannot have been done there, since none is faster
// than alone. Ops that belong to no step do not count.
PolicyLoad policy_load(const RankTimeline& rank, const std::vector<Window>& windows, const SteadyState& steady,
                       const CostModel& cost, const BoundRates& rates);

}  // namespace tandem
