// How much of a GPU a matrix product keeps busy: its result is made in tiles, whole ones at its edges too, a round of
// the multiprocessors at a time. Must not know rates or profiles.
#pragma once

#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

// The flops that a GPU of `processors` multiprocessors could do in the time of `kernel` (a Gemm, or several of one
// size), at the rate of an endless product in the best tiles: those of the sizes that libraries have in which it is
// done first. `processors` 0: not known to be such a GPU, its flops.
double gemm_flops(const Kernel& kernel, std::int32_t processors);

}  // namespace tandem
