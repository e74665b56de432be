// What ranks send compressed, on the GPU: the CPU's bits (runtime/optimizer/sent_code.cpp). In 16 bits a thread has a
// number; of signs a warp has a block, whose magnitudes its lanes add up as the CPU does.
#include "core/base/host_device.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/cuda/masters.cuh"
#include "runtime/optimizer/one_bit_formula.hpp"
#include "runtime/optimizer/rules/rules.hpp"
#include "runtime/optimizer/sent_code_formula.hpp"

namespace tandem {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kSignsPerWord;  // of a thread block
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

unsigned thread_blocks(std::int64_t threads) { return static_cast<unsigned>(rounded_up_quotient(threads, kThreads)); }

__device__ std::int64_t thread() { return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

__device__ float decoded(const SentCode& code, const std::byte* sent, std::int64_t i) {
  if (code.kind == SentCode::Kind::BFloat16) return to_float(reinterpret_cast<const BFloat16*>(sent)[i]);
  if (code.kind == SentCode::Kind::Float16) return to_float(reinterpret_cast<const Float16*>(sent)[i]);
  const auto* words = reinterpret_cast<const std::uint32_t*>(sent) + i / code.block * (1 + code.block / kSignsPerWord);
  const std::int64_t at = i % code.block;
  return sent_number(words[0], words[1 + at / kSignsPerWord] >> (at % kSignsPerWord) & 1U);
}

// The kinds of SentNumbers.
template <class Gradient>
struct GradientNumbers {
  const Gradient* gradient;
  __device__ float at(std::int64_t i) const { return to_float(gradient[i]); }
};
template <class Gradient>
struct MomentumNumbers {
  const Gradient* gradient;
  const float* momentum;
  float momentum_weight, gradient_weight;
  __device__ float at(std::int64_t i) const {
    return momentum_to_send(momentum_weight, momentum[i], gradient_weight, to_float(gradient[i]), 1);
  }
};
struct MeanNumbers {
  SentCode code;
  const std::byte* codes;
  std::int64_t ranks, stride;
  __device__ float at(std::int64_t i) const {
    float sum = decoded(code, codes, i);
    for (std::int64_t rank = 1; rank < ranks; ++rank) sum = rounded::add(sum, decoded(code, codes + rank * stride, i));
    return rounded::divide(sum, static_cast<float>(ranks));
  }
};

template <class Numbers>
__device__ float to_send(const Numbers& numbers, const float* kept, std::int64_t i) {
  return rounded::add(numbers.at(i), kept == nullptr ? 0.0F : kept[i]);
}

template <class Narrow, class Numbers>
__global__ void encode_each_kernel(Numbers numbers, float* kept, Narrow* sent, std::int64_t elements) {
  const std::int64_t i = thread();
  if (i >= elements) return;
  const float all = kept == nullptr ? numbers.at(i) : to_send(numbers, kept, i);
  sent[i] = sent_as(Narrow{}, all);
  if (kept != nullptr) kept[i] = rounded::subtract(all, to_float(sent[i]));
}

template <class Numbers>
__global__ void encode_signs_kernel(Numbers numbers, float* kept, std::uint32_t* sent, std::int64_t elements,
                                    std::int64_t size, std::int64_t blocks) {
  const std::int64_t block = thread() / kSignsPerWord, lane = threadIdx.x % kSignsPerWord;
  if (block >= blocks) return;  // a whole warp
  const std::int64_t begin = block * size, end = begin + size < elements ? begin + size : elements;
  float sum = 0;
  for (std::int64_t i = begin + lane; i < end; i += kSignsPerWord)
    sum = rounded::add(sum, fabsf(to_send(numbers, kept, i)));
  for (int distance = kSignsPerWord / 2; distance > 0; distance /= 2)
    sum = rounded::add(sum, __shfl_xor_sync(kAllLanes, sum, distance));
  const std::uint32_t scale = float_as_bits(rounded::divide(sum, static_cast<float>(end - begin)));
  std::uint32_t* const words = sent + block * (1 + size / kSignsPerWord);
  if (lane == 0) words[0] = scale;
  for (std::int64_t first = begin; first < end; first += kSignsPerWord) {
    const std::int64_t i = first + lane;
    const float all = i < end ? to_send(numbers, kept, i) : 0;
    const std::uint32_t bit = i < end ? sign_bit(all) : 0;
    const std::uint32_t word = __ballot_sync(kAllLanes, bit != 0);
    if (i < end && kept != nullptr) kept[i] = momentum_to_keep(all, 1, sent_number(scale, bit), true);
    if (lane == 0) words[1 + (first - begin) / kSignsPerWord] = word;
  }
}

template <class Narrow, class Numbers>
void encode_each(const EncodeSpan& span, const Numbers& numbers, cudaStream_t stream) {
  encode_each_kernel<<<thread_blocks(span.elements), kThreads, 0, stream>>>(
      numbers, span.kept, reinterpret_cast<Narrow*>(span.sent), span.elements);
}

template <class Numbers>
void encode(const EncodeSpan& span, const Numbers& numbers, cudaStream_t stream) {
  if (span.code.kind == SentCode::Kind::BFloat16) return encode_each<BFloat16>(span, numbers, stream);
  if (span.code.kind == SentCode::Kind::Float16) return encode_each<Float16>(span, numbers, stream);
  const std::int64_t blocks = rounded_up_quotient(span.elements, span.code.block);
  encode_signs_kernel<<<thread_blocks(blocks * kSignsPerWord), kThreads, 0, stream>>>(
      numbers, span.kept, reinterpret_cast<std::uint32_t*>(span.sent), span.elements, span.code.block, blocks);
}

template <class Gradient>
void encode_of(const EncodeSpan& span, cudaStream_t stream) {
  const SentNumbers& of = span.numbers;
  const auto* gradient = static_cast<const Gradient*>(of.gradient);
  if (of.momentum == nullptr) return encode(span, GradientNumbers<Gradient>{gradient}, stream);
  encode(span, MomentumNumbers<Gradient>{gradient, of.momentum, of.momentum_weight, of.gradient_weight}, stream);
}

template <class Number>
__global__ void decode_kernel(SentCode code, const std::byte* sent, Number* numbers, std::int64_t elements) {
  const std::int64_t i = thread();
  if (i >= elements) return;
  const float number = decoded(code, sent, i);
  if constexpr (sizeof(Number) == sizeof(float))
    numbers[i] = number;
  else
    numbers[i] = to_bfloat16(number);
}

template <class Number>
void decode(const DecodeSpan& span, cudaStream_t stream) {
  decode_kernel<<<thread_blocks(span.elements), kThreads, 0, stream>>>(
      span.code, span.sent, static_cast<Number*>(span.numbers), span.elements);
}

// A skipped step keeps what was; a number whose v is 0 had no gradient in the warm-up, and is not moved by one.
template <class Parameter>
__global__ void sent_update_kernel(UpdateStep step, const UpdateControl* control, const float* m, const float* v,
                                   Masters<Parameter> masters, Watch<Parameter> watch, std::int64_t elements) {
  const std::int64_t i = thread();
  if (i >= elements) return;
  if (control != nullptr && control->gradient_scale == 0) return masters.keep(i);
  auto numbers = masters.template masters<1>(i);
  UpdatedElement<float> element{numbers.at[0], 0, v[i]};
  AdamRule::update(step, v[i] == 0 ? 0 : m[i], element);
  watch.see(i, element.master, element.v);
  numbers.at[0] = element.master;
  masters.write(i, numbers);
}

template <class Parameter>
void sent_update(const UpdateStep& step, const SentSpan& span, const UpdateControl* control, cudaStream_t stream) {
  sent_update_kernel<<<thread_blocks(span.masters.elements), kThreads, 0, stream>>>(
      step, control, span.m, span.v, Masters<Parameter>(span.masters), Watch<Parameter>(span.masters),
      span.masters.elements);
}

}  // namespace

void launch_encode_sent(const EncodeSpan& span, cudaStream_t stream) {
  if (span.elements == 0) return;
  const SentNumbers& of = span.numbers;
  if (of.gradient == nullptr) return encode(span, MeanNumbers{span.code, of.codes, of.ranks, of.stride}, stream);
  of.gradient_type == DType::F32 ? encode_of<float>(span, stream) : encode_of<BFloat16>(span, stream);
}

void launch_decode_sent(const DecodeSpan& span, cudaStream_t stream) {
  if (span.elements == 0) return;
  span.type == DType::F32 ? decode<float>(span, stream) : decode<BFloat16>(span, stream);
}

void launch_sent_update(const UpdateStep& step, const SentSpan& span, const UpdateControl* control,
                        cudaStream_t stream) {
  if (span.masters.elements == 0) return;
  span.masters.parameter_type == DType::F32 ? sent_update<float>(step, span, control, stream)
                                            : sent_update<BFloat16>(step, span, control, stream);
}

}  // namespace tandem
