#include "core/run/suits_ranks.hpp"

#include "core/base/errors.hpp"

namespace tandem {

void require_suits_ranks(const Scenario& scenario, const PolicyTraits& traits) {
  if (!traits.offloads) return;
  if (scenario.workload.tensor > 1)
    throw ConfigError(
        "parallel.tensor: offloading of divided layers is not built so far; allowed: 1, or policy: resident");
  if (scenario.parallel.fold)
    throw ConfigError(
        "parallel.fold: ranks that offload share their host, and are not alike; allowed: false, or policy: resident");
}

}  // namespace tandem
