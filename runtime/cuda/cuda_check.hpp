// CUDA's return codes as DeviceError. Must not know what was called for.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/base/errors.hpp"

namespace tandem {

// `what`: the attempt, for people: "copying 4096 bytes to the device".
inline void cuda_check(cudaError_t code, const std::string& what) {
  if (code == cudaSuccess) return;
  throw DeviceError("CUDA: " + what + ": " + cudaGetErrorName(code) + ": " + cudaGetErrorString(code));
}

}  // namespace tandem
