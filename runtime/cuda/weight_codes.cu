// Compressed weights become numbers on the GPU, and numbers codes: a warp has a block, whose lanes have neighbouring
// numbers. The same bits as on the CPU (runtime/optimizer/weight_codes.cpp).
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

template <int kBits, std::int64_t kElements = kBlockOf<kBits>.elements, std::int64_t kBytes = kBlockOf<kBits>.bytes>
__global__ void encode_kernel(const float* numbers, std::int64_t blocks, std::byte* codes) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  if (block >= blocks) return;
  const float* const in = numbers + block * kElements;
  std::uint32_t largest = 0;
  for (int i = lane; i < kElements; i += kLanes) largest = max(largest, magnitude_bits(in[i]));
  for (int step = kLanes / 2; step > 0; step /= 2) largest = max(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, step));
  const BlockScale scale = block_scale(largest);
  std::byte* const begin = codes + block * kBytes;
  if (lane == 0) *reinterpret_cast<float*>(begin) = scale.scale;
  auto* out = reinterpret_cast<std::uint8_t*>(begin + kScaleBytes);
  const auto code = [&](int i) { return code_of<WeightMap<kBits>>(in[i], scale.inverse); };
  for (int i = lane; i < kElements * kBits / 8; i += kLanes)
    if constexpr (kBits == 8)
      out[i] = static_cast<std::uint8_t>(code(i));
    else
      out[i] = static_cast<std::uint8_t>(code(2 * i) | code(2 * i + 1) << 4);
}

}  // namespace

void launch_encode_weights(const float* numbers, std::int64_t bits, std::int64_t blocks, std::byte* codes,
                           cudaStream_t stream) {
  if (blocks == 0) return;
  const auto thread_blocks = static_cast<unsigned>((blocks + kWarps - 1) / kWarps);
  constexpr unsigned kThreads = kWarps * kLanes;
  if (bits == 8)
    encode_kernel<8><<<thread_blocks, kThreads, 0, stream>>>(numbers, blocks, codes);
  else
    encode_kernel<4><<<thread_blocks, kThreads, 0, stream>>>(numbers, blocks, codes);
}

void launch_decode_weights(const WeightSpan& span, cudaStream_t stream) {
  if (span.blocks == 0) return;
  if (span.bits == 8)
    launch<8>(span, stream);
  else
    launch<4>(span, stream);
}

}  // namespace tandem
