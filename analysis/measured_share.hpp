// How much of a run's computing is of ops whose times were measured one by one, and what the rest is: what a reader of
// a predicted step time may rely on. Must not know formats or how profiles are made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

struct MeasuredShare {
  bool any = false;  // the profile has measured ops
  double share = 0;  // of what ops take on the compute lanes and on teams of CPU threads, in the steps that count
  int measured = 0;  // kinds of op that were measured, one for each size
  std::vector<std::pair<std::string, double>> modelled;  // bodies of the others with their shares, the largest first
};

MeasuredShare measured_share(const Timeline& timeline, const Steps& steps, const Scenario& scenario);

}  // namespace tandem
