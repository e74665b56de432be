// Keeps a stream from going on before a time has passed: for copies that are to take as long as on a slower bus. The
// GPU's own clock is read there, so that nothing waits for the host, nor one stream for another's.
#include <cstdint>

#include "runtime/cuda/kernels.hpp"

namespace tandem {
namespace {

__device__ std::int64_t now_ns() {
  std::int64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void stamp_kernel(std::int64_t* at) { *at = now_ns(); }

__global__ void hold_kernel(const std::int64_t* at, std::int64_t ns) {
  constexpr unsigned kNapNs = 500;
  while (now_ns() - *at < ns) __nanosleep(kNapNs);
}

}  // namespace

void launch_stamp(std::int64_t* at, cudaStream_t stream) { stamp_kernel<<<1, 1, 0, stream>>>(at); }

void launch_hold(const std::int64_t* at, std::int64_t ns, cudaStream_t stream) {
  hold_kernel<<<1, 1, 0, stream>>>(at, ns);
}

}  // namespace tandem
