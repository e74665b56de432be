// What the host's memory gives to cores: to all at once, and to an optimizer step by a few. Must not know profiles.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/statistics.hpp"
#include "runtime/executors/arena.hpp"

namespace tandem {

// Bytes/s of a loop with the optimizer's streams and next to no arithmetic (runtime/optimizer/triad.hpp) over `bytes`
// of memory, by `threads` threads.
Summary time_triad(int threads, std::int64_t bytes, int repeats);

// Parameters/s of an optimizer step over states in this memory, by each of these numbers of threads, in turns. The
// memory of runs: a few threads are held up by its pages' size, which all together, who wait for DRAM anyway, do not
// feel.
std::vector<Summary> time_updates(const std::vector<int>& threads, Arena memory, int repeats);

}  // namespace tandem
