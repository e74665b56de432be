// What a config.json beside weights says of the network that they are of, where the scenario says something else: the
// likely reason that shapes differ. Must not know weights.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

// "workload.hidden: is 64, and DIR/config.json says 48; allowed: ..." for each key that sizes a weight. None where
// there is no config.json that is understood.
std::vector<std::string> keys_unlike_config(const std::string& folder, const Scenario& scenario);

}  // namespace tandem
