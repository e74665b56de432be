// Memory of a test that both processors address. Lives as long as the process.
#pragma once

#include <cstddef>

#include "runtime/cuda/cuda_check.hpp"

namespace tandem {

inline std::byte* shared_bytes(std::size_t count) {
  void* bytes = nullptr;
  cuda_check(cudaMallocHost(&bytes, count), "test memory");
  return static_cast<std::byte*>(bytes);
}

}  // namespace tandem
