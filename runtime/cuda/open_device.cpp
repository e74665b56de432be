// The devices of tandem-train-cuda.
#include "runtime/open_device.hpp"

#include <c10/cuda/CUDAStream.h>

#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/cuda/cuda_allocator.hpp"
#include "runtime/cuda/cuda_device.hpp"
#include "runtime/cuda/kernels.hpp"

namespace tandem {
namespace {

void adam(const AdamStep& step, const AdamSpan& span, const double* coefficient) {
  launch_adam(step, span, coefficient, c10::cuda::getCurrentCUDAStream());
}

}  // namespace

bool has_device(const std::string& name) { return name == "cpu" || name == "cuda"; }

std::shared_ptr<Device> open_device(const std::string& name) {
  if (name == "cpu") return nullptr;
  auto device = std::make_shared<CudaDevice>();
  install_cuda_workspace_allocator();
  set_device_kernels({&adam});
  return device;
}

}  // namespace tandem
