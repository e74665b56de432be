// Activations are stored sparse on the GPU: a warp has a block, a lane two neighbouring numbers. A number is kept if
// fewer than so many come before it in the order of magnitudes. The same bits as on the CPU
// (runtime/optimizer/sparse_blocks.cpp).
#include "runtime/cuda/kernels.hpp"
#include "runtime/optimizer/sparse_blocks.hpp"

namespace tandem {
namespace {

constexpr int kLanes = 32, kWarps = 8;  // of a warp; of a thread block
constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kBlock = static_cast<int>(kSparseBlock);

// Of the two masks of 32 numbers: even places, then odd ones.
__device__ std::uint64_t interleaved(unsigned even, unsigned odd) {
  std::uint64_t mask = 0;
  for (int i = 0; i < kLanes; ++i)
    mask |= static_cast<std::uint64_t>((even >> i & 1U) | (odd >> i & 1U) << 1U) << (2 * i);
  return mask;
}

template <class Word>
__global__ void encode_kernel(SparseSpan span) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  if (block * kBlock >= span.elements) return;  // a whole warp
  const auto* numbers = static_cast<const Word*>(span.numbers) + block * kBlock;
  const std::int64_t left = span.elements - block * kBlock;
  const int count = left < kBlock ? static_cast<int>(left) : kBlock;
  constexpr Word kMagnitude = static_cast<Word>(~(Word{1} << (8 * sizeof(Word) - 1)));
  Word word[2] = {};
  int magnitude[2] = {-1, -1};  // of what is not there: after all
  for (int k = 0; k < 2; ++k)
    if (2 * lane + k < count) {
      word[k] = numbers[2 * lane + k];
      magnitude[k] = static_cast<int>(word[k] & kMagnitude);
    }
  int before[2] = {0, 0};  // numbers that are larger, or as large and come first
  for (int other = 0; other < kLanes; ++other)
    for (int part = 0; part < 2; ++part) {
      const int theirs = __shfl_sync(kAllLanes, magnitude[part], other);
      for (int k = 0; k < 2; ++k) {
        const bool first = 2 * other + part < 2 * lane + k;
        before[k] += first ? theirs >= magnitude[k] : theirs > magnitude[k];
      }
    }
  bool keeps[2];
  for (int k = 0; k < 2; ++k) keeps[k] = before[k] < span.kept && 2 * lane + k < count;
  const unsigned even = __ballot_sync(kAllLanes, keeps[0]), odd = __ballot_sync(kAllLanes, keeps[1]);
  const unsigned lower = (1U << lane) - 1;
  auto* values = static_cast<Word*>(span.values) + block * span.kept;
  int at = __popc(even & lower) + __popc(odd & lower);
  for (int k = 0; k < 2; ++k)
    if (keeps[k]) values[at++] = word[k];
  for (int i = __popc(even) + __popc(odd) + lane; i < span.kept; i += kLanes) values[i] = 0;
  if (lane == 0) span.masks[block] = interleaved(even, odd);
}

template <class Word>
__global__ void decode_kernel(SparseSpan span) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  if (block * kBlock >= span.elements) return;
  const SparseMask mask = span.masks[block];
  const auto* values = static_cast<const Word*>(span.values) + block * span.kept;
  auto* numbers = static_cast<Word*>(span.numbers) + block * kBlock;
  const std::int64_t left = span.elements - block * kBlock;
  for (int i = lane; i < kBlock && i < left; i += kLanes) {
    const bool kept = (mask >> i & 1U) != 0;
    numbers[i] = kept ? values[__popcll(mask & ((SparseMask{1} << i) - 1))] : Word{0};
  }
}

unsigned thread_blocks(const SparseSpan& span) {
  return static_cast<unsigned>((sparse_blocks(span.elements) + kWarps - 1) / kWarps);
}

}  // namespace

void launch_encode_sparse(const SparseSpan& span, cudaStream_t stream) {
  if (span.elements == 0) return;
  if (size_of(span.type) == 4)
    encode_kernel<std::uint32_t><<<thread_blocks(span), kWarps * kLanes, 0, stream>>>(span);
  else
    encode_kernel<std::uint16_t><<<thread_blocks(span), kWarps * kLanes, 0, stream>>>(span);
}

void launch_decode_sparse(const SparseSpan& span, cudaStream_t stream) {
  if (span.elements == 0) return;
  if (size_of(span.type) == 4)
    decode_kernel<std::uint32_t><<<thread_blocks(span), kWarps * kLanes, 0, stream>>>(span);
  else
    decode_kernel<std::uint16_t><<<thread_blocks(span), kWarps * kLanes, 0, stream>>>(span);
}

}  // namespace tandem
