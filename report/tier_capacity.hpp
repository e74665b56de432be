// A tier's capacity under the scenario's limits, as summaries and charts show it. Must not know runs.
#pragma once

#include <cstdint>
#include <string>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Of one device, or of the whole host or disk.
std::int64_t tier_capacity_bytes(const Scenario& scenario, Tier tier);
// The same for the keys of the result's peak_bytes: device0..., host, host_pinned, disk.
std::int64_t capacity_of_peak(const Scenario& scenario, const std::string& key);

}  // namespace tandem
