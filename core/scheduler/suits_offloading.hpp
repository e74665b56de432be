// What no policy that offloads can do so far. In the header alone: every policy's file calls it as it registers itself.
#pragma once

#include "core/base/errors.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Throws ConfigError (text without position) for layers that ranks divide, and for ranks that stand for others.
inline void require_suits_offloading(const Scenario& scenario) {
  if (scenario.workload.tensor > 1)
    throw ConfigError(
        "parallel.tensor: offloading of divided layers is not built so far; allowed: 1, or policy: resident");
  if (scenario.parallel.fold)
    throw ConfigError(
        "parallel.fold: ranks that offload share their host, and are not alike; allowed: false, or policy: resident");
}

}  // namespace tandem
