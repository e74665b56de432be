// The devices of tandem-train-cuda.
#include "runtime/open_device.hpp"

#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <tuple>

#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/cuda/cuda_allocator.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/cuda/jpeg_decoder.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/cuda/rank_device.hpp"

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

void encode_sent(const EncodeSpan& span) { launch_encode_sent(span, stream()); }

void decode_sent(const DecodeSpan& span) { launch_decode_sent(span, stream()); }

void sent_update(const UpdateStep& step, const SentSpan& span, const UpdateControl* control) {
  launch_sent_update(step, span, control, stream());
}

void decode_on_stream(const WeightSpan& span) { launch_decode_weights(span, stream()); }

void encode_on_stream(const float* numbers, std::int64_t bits, std::int64_t blocks, std::byte* codes) {
  launch_encode_weights(numbers, bits, blocks, codes, stream());
}

void encode_sparse_on_stream(const SparseSpan& span) { launch_encode_sparse(span, stream()); }

void decode_sparse_on_stream(const SparseSpan& span) { launch_decode_sparse(span, stream()); }

void decode_jpegs_on_stream(std::span<const DeviceJpeg> pictures) { decode_jpegs(pictures, stream()); }

void resize_on_stream(const DeviceResize& span) { launch_resize(span, stream()); }

}  // namespace

bool has_device(const std::string& name) { return name == "cpu" || name == "cuda"; }

std::shared_ptr<Device> open_device(const std::string& name, Rank rank, Rank ranks) {
  if (name == "cpu") return nullptr;
  if (ranks > 1) {  // before CUDA looks at the variable, at its first call
    std::tie(rank, ranks) = on_this_host(rank, ranks, [](const char* variable) { return std::getenv(variable); });
    constexpr const char *kVariable = "CUDA_VISIBLE_DEVICES", *kAsGiven = "TANDEM_GIVEN_DEVICES";
    const char* given = std::getenv(kAsGiven);  // by the rank that starts the others
    if (given == nullptr) given = std::getenv(kVariable);
    const std::string devices = given != nullptr ? given : "";
    setenv(kAsGiven, devices.c_str(), 1);
    setenv(kVariable, visible_devices(devices, rank, ranks).c_str(), 1);
    // Kernels that are loaded at first use may wait until the device is idle, which it is not while it waits for what
    // another rank sends; and that one may wait for this one's.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    // Streams that share a queue of the device's wait for each other: what another rank waits for must not queue behind
    // what waits for that rank. There are more lanes than the 8 queues that CUDA opens by itself.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  }
  auto device = std::make_shared<CudaDevice>(ranks);
  install_cuda_workspace_allocator();
  set_device_kernels({&update, &square_sum, &sum, &control, &compress_momentum, &encode_sent, &decode_sent,
                      &sent_update, &decode_on_stream, &encode_on_stream, &encode_sparse_on_stream,
                      &decode_sparse_on_stream, &decode_jpegs_on_stream, &resize_on_stream});
  return device;
}

}  // namespace tandem
