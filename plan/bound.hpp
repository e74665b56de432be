// Before any run of a scenario: how short a step can be at least, and what memory it cannot do without. Of a pipeline,
// of all stages together. Must not know policies.
#pragma once

#include "core/scenario/scenario.hpp"

namespace tandem {

struct StepBound {
  double step_s = 0, compute_s = 0;  // as of CandidateBound
  std::int64_t bytes = 0;            // that live from step to step, of the rank that has most
};
// Of two steps, as each is like the one before. Throws ConfigError for what family, optimizer or transforms do not
// allow.
StepBound step_bound(Scenario scenario);

}  // namespace tandem
