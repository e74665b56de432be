// Which stages of a plan recompute what they save for their backward, and in which segments. Must not know how steps
// are built.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/request.hpp"
#include "core/scenario/scenario.hpp"
#include "core/workloads/common/plan.hpp"

namespace tandem {

struct Recomputation {
  std::vector<bool> recomputes;  // by stage
  // By stage: the first that is recomputed, up to this one, when the backward comes to it; the next one: none is.
  std::vector<std::size_t> from;
};

// As the request says, or else workload.recompute. Throws ConfigError where nothing fits workload.activation_bytes.
Recomputation choose_recomputation(const TrainingPlan& plan, const Scenario& scenario, const GraphRequest& request);

}  // namespace tandem
