// The longest chain of dependencies through a graph, each op where it is fastest and each copy alone on its lane: no
// schedule is shorter. Must not know schedules or capacities.
#pragma once

#include "report/compulsory.hpp"

namespace tandem {

// Seconds for the whole graph of one rank. Divisible ops overlap with the copies on both of their sides, part by part.
double critical_path_s(const Graph& graph, const CostModel& cost, const Rates& rates);

}  // namespace tandem
