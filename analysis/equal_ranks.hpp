// Which ranks of a run do the same at the same times, so that one picture serves them all. Must not know formats or
// worlds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/timeline.hpp"

namespace tandem {

// Indices of timeline.ranks, in order; of each group the first stands for the others. Two ranks are equal if their
// lanes ran the same commands by kind, name, step and bytes in the same order, and each started and finished within
// `grain_ns` of its counterpart.
std::vector<std::vector<std::size_t>> equal_ranks(const Timeline& timeline, std::int64_t grain_ns);

}  // namespace tandem
