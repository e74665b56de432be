// Of a run of many ranks, those that its reports tell of: one of all that do the same. Must not know logs or formats.
#pragma once

#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

// A rank's commands take about 10 MB a step of a large model: up to so many ranks are all told of.
inline constexpr Rank kMostToldRanks = 128;

// By rank, whether it is one. All, unless there are more than `most` and they do the same (policy resident throughout,
// no parameter servers, nothing generated): then those of one copy of the pipeline, and of each copy that has a slow
// rank.
std::vector<bool> told_ranks(const Scenario& scenario, Rank most = kMostToldRanks);

}  // namespace tandem
