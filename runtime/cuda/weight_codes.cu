// Compressed weights become numbers on the GPU: a warp has a block, whose lanes write neighbouring numbers. The same
// bits as on the CPU (runtime/optimizer/weight_codes.cpp).
#include "runtime/cuda/kernels.hpp"
#include "runtime/optimizer/weight_codes.hpp"

namespace tandem {
namespace {

constexpr int kLanes = 32, kWarps = 8;  // of a warp; of a thread block

template <int kBits>
constexpr StateBlock kBlockOf = weight_block(kBits);  // the host's function, so not called by kernels

template <int kBits, class Number, std::int64_t kElements = kBlockOf<kBits>.elements,
          std::int64_t kBytes = kBlockOf<kBits>.bytes>
__global__ void decode_kernel(WeightSpan span) {
  __shared__ float levels[16];  // looked up by number: a thread's own table would lie in device memory
  if (kBits == 4 && threadIdx.x < 16) levels[threadIdx.x] = WeightMap<4>::level(static_cast<int>(threadIdx.x));
  __syncthreads();
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  if (block >= span.blocks) return;
  const std::byte* const begin = span.codes + block * kBytes;
  const float scale = *reinterpret_cast<const float*>(begin);
  const auto* codes = reinterpret_cast<const std::uint8_t*>(begin + kScaleBytes);
  auto* out = static_cast<Number*>(span.numbers) + block * kElements;
  for (int i = lane; i < kElements; i += kLanes) {
    float level = 0;
    if constexpr (kBits == 8)
      level = WeightMap<8>::level(codes[i]);
    else
      level = levels[codes[i / 2] >> (i % 2 * 4) & 15];
    out[i] = weight_as<Number>(rounded::multiply(level, scale));
  }
}

template <int kBits>
void launch(const WeightSpan& span, cudaStream_t stream) {
  const auto thread_blocks = static_cast<unsigned>((span.blocks + kWarps - 1) / kWarps);
  constexpr unsigned kThreads = kWarps * kLanes;
  if (span.type == DType::F32)
    decode_kernel<kBits, float><<<thread_blocks, kThreads, 0, stream>>>(span);
  else if (span.type == DType::BF16)
    decode_kernel<kBits, BFloat16><<<thread_blocks, kThreads, 0, stream>>>(span);
  else
    decode_kernel<kBits, Float16><<<thread_blocks, kThreads, 0, stream>>>(span);
}

}  // namespace

void launch_decode_weights(const WeightSpan& span, cudaStream_t stream) {
  if (span.blocks == 0) return;
  if (span.bits == 8)
    launch<8>(span, stream);
  else
    launch<4>(span, stream);
}

}  // namespace tandem
