// The YAML file of a sweep, read and checked. Must not know what is in scenarios but their policies' names.
#pragma once

#include <string>
#include <vector>

#include "sweep/plan.hpp"

namespace tandem {

// Throws ConfigError with a line for each error, "file:line:column: key: problem; allowed". `policies`, `figures`: the
// names that there are. The base and the keys of the scenario are checked by who loads it.
SweepPlan read_sweep(const std::string& path, const std::vector<std::string>& policies,
                     const std::vector<std::string>& figures);

}  // namespace tandem
