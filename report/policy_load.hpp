// How long the commands that a policy chose keep the busiest resource busy, each at the speed it would have alone.
// Must not know the order or the times in which they ran.
#pragma once

#include <string>

#include "report/compulsory.hpp"
#include "report/timeline.hpp"

namespace tandem {

struct PolicyLoad {
  double seconds = 0;    // over the whole run
  std::string resource;  // a lane's engine, "pcie" or "dram"
};

PolicyLoad policy_load(const RankTimeline& rank, const CostModel& cost, const Rates& rates);

}  // namespace tandem
