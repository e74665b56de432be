// Ranks that divide layers two ways (parallel.hidden): of those that do (tensor_group()), some divide the hidden width,
// and the others columns and heads. Must not know what ranks compute or say to each other.
#pragma once

#include "core/scenario/ranks.hpp"

namespace tandem {

// Those that divide the hidden width; 1: none do.
std::int64_t hidden_ranks(const Scenario& scenario);
// All that divide columns and heads with the rank, and have its part of the width: neighbours.
RankGroup columns_group(const Scenario& scenario, Rank rank);
// All that divide the hidden width with it, and have its columns and heads.
RankGroup hidden_group(const Scenario& scenario, Rank rank);

}  // namespace tandem
