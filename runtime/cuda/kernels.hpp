// The GPU kernels of this project, as functions that enqueue them. Errors show at the next call that asks CUDA for
// them. Must not know LibTorch: nvcc compiles these files alone.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/optimizer/adam.hpp"

namespace tandem {

// Pointers of the span and `coefficient` (may be null: 1; else it takes the place of the step's scale) are the
// device's.
void launch_adam(const AdamStep& step, const AdamSpan& span, const double* coefficient, cudaStream_t stream);

// The sum of squares of a field, added to `total` (which begins with it where `first`); `copy`, if not null, gets the
// total, too. `sums`: norm_blocks(elements) doubles of scratch.
void launch_square_sum(const void* gradient, DType type, std::int64_t elements, bool first, double* sums, double* total,
                       double* copy, cudaStream_t stream);
// Adds one number to `total`.
void launch_sum(const double* part, bool first, double* total, cudaStream_t stream);
// Turns a sum of squares into the coefficient that clips by it; `copy` gets it, too.
void launch_clip(double clip_norm, double* coefficient, double* copy, cudaStream_t stream);

}  // namespace tandem
