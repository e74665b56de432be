// What the host's memory gives to cores: to all at once, and to an optimizer step by a few. Must not know profiles.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/statistics.hpp"

namespace tandem {

// Bytes/s of a loop with the optimizer's streams and next to no arithmetic (runtime/optimizer/triad.hpp) over `bytes`
// of memory, by `threads` threads.
Summary time_triad(int threads, std::int64_t bytes, int repeats);

// Parameters/s of an optimizer step over `bytes` of states, by each of these numbers of threads.
std::vector<Summary> time_updates(const std::vector<int>& threads, std::int64_t bytes, int repeats);

}  // namespace tandem
