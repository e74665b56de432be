// How far the longest chain of dependencies grows over the steps of a graph, each op where it is fastest and each copy
// alone on its lane: no schedule is shorter. Must not know schedules or capacities.
#pragma once

#include "analysis/compulsory.hpp"

namespace tandem {

// Seconds from the end of the step before the first that counts (or from 0) to the end of the last, for one rank. What
// belongs to no step takes no time. Divisible ops overlap with the copies on both of their sides, part by part.
double critical_path_s(const Graph& graph, const SteadyState& steady, const CostModel& cost, const BoundRates& rates);

}  // namespace tandem
