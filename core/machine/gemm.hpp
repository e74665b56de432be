// How much of a GPU a matrix product keeps busy: its result is made in tiles, whole ones at its edges too.
// Must not know rates or profiles.
#pragma once

#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

// The flops that a GPU could do in the time of `kernel` (a Gemm), at the rate of one whose tiles are full: tiles of 128
// by 256, which libraries choose for large products, either way round. `processors` 0: not known to be such a GPU, its
// flops.
double gemm_flops(const Kernel& kernel, std::int32_t processors);

}  // namespace tandem
