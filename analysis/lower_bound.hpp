// How short a training step can be once a run is under way: per resource, along the critical path, over all placements
// (a linear program over the shares of the optimizer step on device and CPU), and with the traffic and placement that
// the policy chose. No long run of the same graph on the same machine, without noise, has shorter steps in the mean.
// docs/lower_bounds.md has the model.
#pragma once

#include <map>
#include <string>

#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

struct LowerBound {
  // Seconds a step. Always compute, h2d, d2h, cpu_optimizer, disk, critical_path, states_on_host, overall; others where
  // they are not 0. `states_on_host` is `overall` for runs that keep no optimizer state on the device between updates.
  std::map<std::string, double> step_s;
  std::string held_by;  // the resource that alone comes closest to `overall`; "shares" if it takes several together
  double policy_step_s = 0;
  std::string policy_held_by;
  double overall() const { return step_s.at("overall"); }
};

// Of a graph with all of its steps that nothing has run yet, on one rank: no policy's bound. All zero without training
// steps.
LowerBound lower_bound(const Graph& graph, const Scenario& scenario);
// All zero for a record without training steps.
LowerBound lower_bound(const RunRecord& record, const Timeline& timeline, const Steps& steps);

}  // namespace tandem
