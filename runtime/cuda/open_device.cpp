// The devices of tandem-train-cuda.
#include "runtime/open_device.hpp"

#include <c10/cuda/CUDAStream.h>

#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/cuda/cuda_allocator.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/cuda/jpeg_decoder.hpp"
#include "runtime/cuda/kernels.hpp"

namespace tandem {
namespace {

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

void update(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control) {
  launch_update(step, span, control, stream());
}

void square_sum(const void* gradient, DType type, std::int64_t elements, bool first, double* sums, double* total,
                double* copy) {
  launch_square_sum(gradient, type, elements, first, sums, total, copy, stream());
}

void sum(const double* part, bool first, double* total) { launch_sum(part, first, total, stream()); }

void control(const UpdateRules& rules, const double* sum, const LossScale* old, LossScale* state,
             UpdateControl* control, double* copy) {
  launch_control(rules, sum, old, state, control, copy, stream());
}

void compress_momentum(const MomentumSpan& span, const UpdateControl* control) {
  launch_compress_momentum(span, control, stream());
}

void decode_on_stream(const WeightSpan& span) { launch_decode_weights(span, stream()); }

void encode_sparse_on_stream(const SparseSpan& span) { launch_encode_sparse(span, stream()); }

void decode_sparse_on_stream(const SparseSpan& span) { launch_decode_sparse(span, stream()); }

void decode_jpegs_on_stream(std::span<const DeviceJpeg> pictures) { decode_jpegs(pictures, stream()); }

void resize_on_stream(const DeviceResize& span) { launch_resize(span, stream()); }

}  // namespace

bool has_device(const std::string& name) { return name == "cpu" || name == "cuda"; }

std::shared_ptr<Device> open_device(const std::string& name) {
  if (name == "cpu") return nullptr;
  auto device = std::make_shared<CudaDevice>();
  install_cuda_workspace_allocator();
  set_device_kernels({&update, &square_sum, &sum, &control, &compress_momentum, &decode_on_stream,
                      &encode_sparse_on_stream, &decode_sparse_on_stream, &decode_jpegs_on_stream, &resize_on_stream});
  return device;
}

}  // namespace tandem
