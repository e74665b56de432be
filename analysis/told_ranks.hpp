// Of a run of many ranks, those that its reports tell of: one of all that do the same. Must not know logs or formats.
#pragma once

#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

// A rank's commands take about 10 MB a step of a large model: up to so many ranks are all told of.
inline constexpr Rank kMostToldRanks = 128;

// By rank, whether it is one. All, unless there are more than `most` and they do the same at the same times (policy
// resident throughout, no parameter servers, nothing generated, no rank that is slow or late, no links of a topology):
// then those of the first copy of the pipeline.
std::vector<bool> told_ranks(const Scenario& scenario, Rank most = kMostToldRanks);

}  // namespace tandem
