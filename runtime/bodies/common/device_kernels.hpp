// Kernels of our own that bodies call on the device: the program that has a device fills the table. Each enqueues on
// LibTorch's current stream. Must not know ops.
#pragma once

#include <span>

#include "runtime/media/device_pictures.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/sent_code.hpp"
#include "runtime/optimizer/sparse_blocks.hpp"
#include "runtime/optimizer/update.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/optimizer/weight_codes.hpp"

namespace tandem {

struct DeviceKernels {
  // As runtime/cuda/kernels.hpp says.
  void (*update)(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control) = nullptr;
  void (*square_sum)(const void* gradient, DType type, std::int64_t elements, bool first, double* sums, double* total,
                     double* copy) = nullptr;
  void (*sum)(const double* part, bool first, double* total) = nullptr;
  void (*control)(const UpdateRules& rules, const double* sum, const LossScale* old, LossScale* state,
                  UpdateControl* control, double* copy) = nullptr;
  void (*compress_momentum)(const MomentumSpan& span, const UpdateControl* control) = nullptr;
  void (*encode_sent)(const EncodeSpan& span) = nullptr;
  void (*decode_sent)(const DecodeSpan& span) = nullptr;
  void (*sent_update)(const UpdateStep& step, const SentSpan& span, const UpdateControl* control) = nullptr;
  void (*decode_weights)(const WeightSpan& span) = nullptr;
  void (*encode_weights)(const float* numbers, std::int64_t bits, std::int64_t blocks, std::byte* codes) = nullptr;
  void (*encode_sparse)(const SparseSpan& span) = nullptr;
  void (*decode_sparse)(const SparseSpan& span) = nullptr;
  // As runtime/cuda/jpeg_decoder.hpp says.
  void (*decode_jpegs)(std::span<const DeviceJpeg> pictures) = nullptr;
  void (*resize)(const DeviceResize& span) = nullptr;
};

// CHECKs that there are some.
const DeviceKernels& device_kernels();
void set_device_kernels(const DeviceKernels& kernels);

// The table's update; gradients are in fp32, or of the parameter's type.
void update_on_device(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control);

}  // namespace tandem
