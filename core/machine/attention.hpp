// How much of a GPU a fused attention keeps busy, and for how long: FlashAttention-2's blocks on its multiprocessors.
// Must not know rates or profiles.
#pragma once

#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

// The flops that a GPU of `processors` multiprocessors could do, at the rate of an endless attention, in the time of
// `kernel` (an Attention). More than its flops where rows and keys do not fill blocks, where blocks do not fill the
// last round of the multiprocessors, and by what each block does beside its products; fewer where a causal mask leaves
// blocks out. `processors` 0: not known, its flops.
double attention_flops(const Kernel& kernel, std::int32_t processors);

}  // namespace tandem
