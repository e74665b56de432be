// Which parameter server has which bucket. Must not know ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step/plan.hpp"

namespace tandem {

// By stage of the plan, the server of its bucket, from 0; kNone: nothing of it is trained. The largest bucket first,
// each to the server that has the fewest elements so far, so that all have about as many. Throws ConfigError for more
// servers than buckets.
std::vector<std::int32_t> server_of(const TrainingPlan& plan, std::int64_t servers);

}  // namespace tandem
