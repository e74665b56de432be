#include "runtime/cuda/cuda_allocator.hpp"

#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {
namespace {

void* allocate(std::size_t bytes, int, cudaStream_t) {
  // Never none: LibTorch's book of allocations goes by address.
  bytes = std::max<std::size_t>(bytes, 1);
  if (WorkspaceScope* scope = WorkspaceScope::current()) return scope->allocate(bytes);
  void* memory = nullptr;
  cuda_check(cudaMalloc(&memory, bytes), "allocating " + std::to_string(bytes) + " bytes for LibTorch");
  return memory;
}

void free(void* memory, std::size_t, int, cudaStream_t) {
  if (!WorkspaceScope::take_back(memory)) cudaFree(memory);
}

}  // namespace

void install_cuda_workspace_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto allocator = torch::cuda::CUDAPluggableAllocator::createCustomAllocator(&allocate, &free);
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(allocator);
  });
}

}  // namespace tandem
