#include "runtime/optimizer/one_bit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/base/check.hpp"
#include "core/formats/one_bit.hpp"
#include "runtime/optimizer/kernels.hpp"
#include "runtime/optimizer/one_bit_formula.hpp"

namespace tandem {
namespace {

// Sums of every 32nd number, which are added in pairs that lie 16, 8, ... apart: as the lanes of a warp do.
float mean_magnitude(const float* numbers, std::int64_t count) {
  float lanes[kSignsPerWord] = {};
  for (std::int64_t first = 0; first < count; first += kSignsPerWord)
    for (std::int64_t i = 0; i < std::min(kSignsPerWord, count - first); ++i) lanes[i] += std::fabs(numbers[first + i]);
  for (std::int64_t distance = kSignsPerWord / 2; distance > 0; distance /= 2)
    for (std::int64_t i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
  return rounded::divide(lanes[0], static_cast<float>(count));
}

template <class Gradient>
void compress_block(const MomentumSpan& block, float gradient_scale) {
  const auto* gradient = static_cast<const Gradient*>(block.gradient);
  float* const kept = block.kept;
  for (std::int64_t i = 0; i < block.elements; ++i)
    kept[i] =
        momentum_to_send(block.kept_weight, kept[i], block.gradient_weight, to_float(gradient[i]), gradient_scale);
  const std::uint32_t scale = float_as_bits(mean_magnitude(kept, block.elements));
  block.signs[0] = scale;
  for (std::int64_t first = 0; first < block.elements; first += kSignsPerWord) {
    std::uint32_t word = 0;
    for (std::int64_t i = 0; i < std::min(kSignsPerWord, block.elements - first); ++i) {
      float& number = kept[first + i];
      const std::uint32_t bit = sign_bit(number);
      word |= bit << static_cast<std::uint32_t>(i);
      number = momentum_to_keep(number, block.gradient_weight, sent_number(scale, bit), block.error_feedback);
    }
    block.signs[1 + first / kSignsPerWord] = word;
  }
}

}  // namespace

void compress_momentum(const MomentumSpan& span, float gradient_scale) {
  CHECK(span.gradient_type == DType::F32 || span.gradient_type == DType::BF16, name_of(span.gradient_type));
  if (gradient_scale == 0) {
    for (std::int64_t i = 0; i < span.elements; ++i) span.kept[i] = rounded::multiply(span.kept_weight, span.kept[i]);
    std::memset(span.signs, 0, static_cast<std::size_t>(sign_words(span.elements, span.block)) * sizeof(*span.signs));
    return;
  }
  for (std::int64_t first = 0; first < span.elements; first += span.block) {
    const MomentumSpan block = part_of(span, first, std::min(span.block, span.elements - first));
    block.gradient_type == DType::F32 ? compress_block<float>(block, gradient_scale)
                                      : compress_block<BFloat16>(block, gradient_scale);
  }
}

UpdateStep one_bit_step(const UpdateOptions& options, std::int64_t step, std::int64_t warmup_steps) {
  UpdateStep s = update_step(options, step);
  s.v_root_correction = update_step(options, warmup_steps).v_root_correction;
  // Adam takes m from what was sent, and v as it is.
  s.m_from_gradient = true;
  s.m_weight = 0;
  s.beta2 = 1;
  s.v_weight = 0;
  return s;
}

bool one_bit_update(const UpdateStep& step, const SignSpan& span) { return one_bit_update(step, span, best_isa()); }

bool one_bit_update(const UpdateStep& step, const SignSpan& span, Isa isa) {
  CHECK(span.masters.parameter_type == DType::F32 || span.masters.parameter_type == DType::BF16);
  return kernels_of(isa).one_bit(step, span);
}

MomentumSpan part_of(const MomentumSpan& span, std::int64_t first, std::int64_t elements) {
  CHECK(first % span.block == 0 && elements <= span.elements - first, first, elements, span.block);
  MomentumSpan part = span;
  part.gradient = static_cast<const std::byte*>(span.gradient) + first * size_of(span.gradient_type);
  part.kept += first;
  part.signs += sign_words(first, span.block);
  part.elements = elements;
  return part;
}

SignSpan part_of(const SignSpan& span, std::int64_t first, std::int64_t elements) {
  CHECK(first % span.block == 0, first, span.block);
  return {span.signs + sign_words(first, span.block), span.v + first, span.block,
          part_of(span.masters, first, elements)};
}

}  // namespace tandem
