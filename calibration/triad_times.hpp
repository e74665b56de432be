// What the host's memory gives to all cores at once. Must not know profiles.
#pragma once

#include <cstdint>

#include "calibration/statistics.hpp"

namespace tandem {

// Bytes/s of a loop with the optimizer's streams and next to no arithmetic (runtime/optimizer/triad.hpp) over `bytes`
// of memory, by `threads` threads.
Summary time_triad(int threads, std::int64_t bytes, int repeats);

}  // namespace tandem
