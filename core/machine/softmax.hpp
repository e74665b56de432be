// What a softmax over long rows moves through a GPU's memory: kernels that read a row more than once, of which caches
// hold a part. Must not know rates or profiles.
#pragma once

#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

// Whether `kernel` (a Memory) is a softmax over rows, as softmax_kernel makes it.
inline bool is_softmax(const Kernel& kernel) { return kernel.kind == KernelKind::Memory && kernel.n > 0; }

// The bytes that the memory of a GPU of `processors` multiprocessors could move in the time of `kernel`, a log softmax
// of fp32 numbers or its backward. `processors` 0: not known to be such a GPU, each operand once.
double softmax_bytes(const Kernel& kernel, std::int32_t processors);

}  // namespace tandem
