// The GPU kernels of this project, as functions that enqueue them. Errors show at the next call that asks CUDA for
// them. Must not know LibTorch: nvcc compiles these files alone.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/media/device_pictures.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/sent_code.hpp"
#include "runtime/optimizer/sparse_blocks.hpp"
#include "runtime/optimizer/update.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/optimizer/weight_codes.hpp"

namespace tandem {

// Pointers of the span and `control` (null: the step as it is) are the device's.
void launch_update(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control, cudaStream_t stream);

// The same for moments that are quantised, which launch_update() calls.
void launch_quantised_update(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control,
                             cudaStream_t stream);

// The sum of squares of a field, added to `total` (which begins with it where `first`); `copy`, if not null, gets the
// total, too. `sums`: norm_blocks(elements) doubles of scratch.
void launch_square_sum(const void* gradient, DType type, std::int64_t elements, bool first, double* sums, double* total,
                       double* copy, cudaStream_t stream);
// Adds one number to `total`.
void launch_sum(const double* part, bool first, double* total, cudaStream_t stream);
// control_update() of `sum`, which may be control->gradient_scale itself; `copy` gets the norm. `old`, `state`: the
// loss scale before and after, which may be one; null: there is none.
void launch_control(const UpdateRules& rules, const double* sum, const LossScale* old, LossScale* state,
                    UpdateControl* control, double* copy, cudaStream_t stream);

// compress_momentum() with the control's scale of the gradient (null: 1).
void launch_compress_momentum(const MomentumSpan& span, const UpdateControl* control, cudaStream_t stream);

// encode() and decode() of what ranks send; one_bit_update() by a momentum that was sent, unless the control skips it.
void launch_encode_sent(const EncodeSpan& span, cudaStream_t stream);
void launch_decode_sent(const DecodeSpan& span, cudaStream_t stream);
void launch_sent_update(const UpdateStep& step, const SentSpan& span, const UpdateControl* control,
                        cudaStream_t stream);

// decode_weights(), encode_weights().
void launch_decode_weights(const WeightSpan& span, cudaStream_t stream);
void launch_encode_weights(const float* numbers, std::int64_t bits, std::int64_t blocks, std::byte* codes,
                           cudaStream_t stream);

// encode_sparse(), decode_sparse().
void launch_encode_sparse(const SparseSpan& span, cudaStream_t stream);
void launch_decode_sparse(const SparseSpan& span, cudaStream_t stream);

// resize().
void launch_resize(const DeviceResize& span, cudaStream_t stream);

// Writes the GPU's time to `at`, on the device; the stream goes on once `ns` have passed since.
void launch_stamp(std::int64_t* at, cudaStream_t stream);
void launch_hold(const std::int64_t* at, std::int64_t ns, cudaStream_t stream);

}  // namespace tandem
