// The GPU kernels of this project, as functions that enqueue them. Errors show at the next call that asks CUDA for
// them. Must not know LibTorch: nvcc compiles these files alone.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/optimizer/adam.hpp"

namespace tandem {

// Pointers of the span and `coefficient` (may be null: 1; else it takes the place of the step's scale) are the
// device's.
void launch_adam(const AdamStep& step, const AdamSpan& span, const double* coefficient, cudaStream_t stream);

}  // namespace tandem
