#include "core/base/errors.hpp"
#include "core/scenario/scenario.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

void require_suits_offloading(const Scenario& scenario) {
  if (scenario.workload.tensor > 1)
    throw ConfigError(
        "parallel.tensor: offloading of divided layers is not built so far; allowed: 1, or policy: resident");
  if (scenario.parallel.fold)
    throw ConfigError(
        "parallel.fold: ranks that offload share their host, and are not alike; allowed: false, or policy: resident");
}

}  // namespace tandem
