// 1-bit Adam's momentum on the GPU: a warp has a block. It adds what was kept to the gradient's share, then sums
// magnitudes over its lanes, and sends a bit for each number and keeps the rest, as the CPU does
// (runtime/optimizer/one_bit.cpp).
#include "core/formats/one_bit.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/optimizer/one_bit_formula.hpp"

namespace tandem {
namespace {

constexpr int kWarps = 8;  // of a thread block
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

template <class Gradient>
__global__ void compress_kernel(MomentumSpan span, const UpdateControl* control, std::int64_t blocks) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kSignsPerWord;
  const int lane = static_cast<int>(threadIdx.x % kSignsPerWord);
  if (block >= blocks) return;  // a whole warp
  const std::int64_t begin = block * span.block;
  const std::int64_t left = span.elements - begin, count = left < span.block ? left : span.block;
  std::uint32_t* const signs = span.signs + block * (1 + span.block / kSignsPerWord);
  float* const kept = span.kept + begin;
  const float gradient_scale = control == nullptr ? 1.0F : static_cast<float>(control->gradient_scale);
  if (gradient_scale == 0) {
    for (std::int64_t word = lane; word < 1 + (count + kSignsPerWord - 1) / kSignsPerWord; word += kSignsPerWord)
      signs[word] = 0;
    for (std::int64_t i = lane; i < count; i += kSignsPerWord)
      kept[i] = rounded::multiply(span.kept_weight, kept[i]);
    return;
  }
  const auto* gradient = static_cast<const Gradient*>(span.gradient) + begin;
  float sum = 0;
  for (std::int64_t i = lane; i < count; i += kSignsPerWord) {
    kept[i] =
        momentum_to_send(span.kept_weight, kept[i], span.gradient_weight, to_float(gradient[i]), gradient_scale);
    sum = rounded::add(sum, fabsf(kept[i]));
  }
  for (int distance = kSignsPerWord / 2; distance > 0; distance /= 2)
    sum = rounded::add(sum, __shfl_xor_sync(kAllLanes, sum, distance));
  const std::uint32_t scale = float_as_bits(rounded::divide(sum, static_cast<float>(count)));
  if (lane == 0) signs[0] = scale;
  for (std::int64_t first = 0; first < count; first += kSignsPerWord) {
    const std::int64_t i = first + lane;
    const std::uint32_t bit = i < count ? sign_bit(kept[i]) : 0;
    const std::uint32_t word = __ballot_sync(kAllLanes, bit != 0);
    const float sent = sent_number(scale, bit);
    if (i < count) kept[i] = momentum_to_keep(kept[i], span.gradient_weight, sent, span.error_feedback);
    if (lane == 0) signs[1 + first / kSignsPerWord] = word;
  }
}

}  // namespace

void launch_compress_momentum(const MomentumSpan& span, const UpdateControl* control, cudaStream_t stream) {
  if (span.elements == 0) return;
  const std::int64_t blocks = rounded_up_quotient(span.elements, span.block);
  const auto thread_blocks = static_cast<unsigned>(rounded_up_quotient(blocks, kWarps));
  constexpr unsigned kThreads = kWarps * kSignsPerWord;
  if (span.gradient_type == DType::F32)
    compress_kernel<float><<<thread_blocks, kThreads, 0, stream>>>(span, control, blocks);
  else
    compress_kernel<BFloat16><<<thread_blocks, kThreads, 0, stream>>>(span, control, blocks);
}

}  // namespace tandem
