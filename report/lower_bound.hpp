// How short a mean training step can be: per resource, along the critical path, over all placements (a linear program
// over the shares of the optimizer step on device and CPU), and with the traffic and placement that the policy chose.
// No run of the same graph on the same machine, without noise, has a shorter mean step. docs/lower_bounds.md has the
// model.
#pragma once

#include <map>
#include <string>

#include "report/timeline.hpp"

namespace tandem {

struct LowerBound {
  // Seconds a step. Always compute, h2d, d2h, cpu_optimizer, disk, critical_path, overall; others where they are not 0.
  std::map<std::string, double> step_s;
  std::string held_by;  // the resource that alone comes closest to `overall`; "shares" if it takes several together
  double policy_step_s = 0;
  std::string policy_held_by;
  double overall() const { return step_s.at("overall"); }
};

// All zero for a record without training steps.
LowerBound lower_bound(const RunRecord& record, const Timeline& timeline);

}  // namespace tandem
