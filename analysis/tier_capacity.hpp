// Capacities under the scenario's limits, as summaries and charts show them. Must not know runs.
#pragma once

#include <cstdint>
#include <string>

#include "core/scenario/scenario.hpp"

namespace tandem {

// For the keys of the result's peak_bytes: device0..., host, host_pinned, disk.
std::int64_t capacity_of_peak(const Scenario& scenario, const std::string& key);

}  // namespace tandem
