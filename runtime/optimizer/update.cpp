#include "runtime/optimizer/update.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/check.hpp"
#include "core/formats/state_blocks.hpp"
#include "runtime/optimizer/kernels.hpp"

namespace tandem {
namespace {

bool is_16_bit_float(DType type) { return type == DType::BF16 || type == DType::F16; }

}  // namespace

UpdateStep update_step(const UpdateOptions& o, std::int64_t step, float gradient_scale) {
  CHECK(step >= 1, step);
  UpdateStep s{};
  s.rule = o.rule;
  s.gradient_scale = gradient_scale;
  s.beta2 = static_cast<float>(o.beta2);
  s.v_weight = static_cast<float>(1 - o.beta2);
  s.epsilon = static_cast<float>(o.epsilon);
  if (o.weight_decay != 0) {
    s.decay = o.decoupled ? WeightDecay::Decoupled : WeightDecay::Coupled;
    s.decay_factor = static_cast<float>(o.decoupled ? 1 - o.learning_rate * o.weight_decay : o.weight_decay);
  }
  if (o.rule != Rule::Adam) {
    s.beta1 = static_cast<float>(o.rule == Rule::Lion ? o.beta1 : o.momentum);
    s.m_weight = static_cast<float>(1 - o.beta1);
    s.negative_step_size = static_cast<float>(-o.learning_rate);
    return s;
  }
  const double m_correction = 1 - std::pow(o.beta1, static_cast<double>(step));
  const double v_correction = 1 - std::pow(o.beta2, static_cast<double>(step));
  const auto weight = static_cast<float>(1 - o.beta1);
  s.beta1 = static_cast<float>(o.beta1);
  s.m_from_gradient = !(weight < 0.5F);
  s.m_weight = s.m_from_gradient ? weight - 1 : weight;
  s.v_root_correction = static_cast<float>(std::sqrt(v_correction));
  s.negative_step_size = static_cast<float>(-(o.learning_rate / m_correction));
  return s;
}

bool update_elements(const UpdateStep& step, const UpdateSpan& span) { return update_elements(step, span, best_isa()); }

bool update_elements(const UpdateStep& step, const UpdateSpan& span, Isa isa) {
  CHECK(span.gradient_type == DType::F32 || is_16_bit_float(span.gradient_type), name_of(span.gradient_type));
  CHECK(span.parameter_type == DType::F32 || is_16_bit_float(span.parameter_type), name_of(span.parameter_type));
  CHECK(span.elements % state_block(span.state_bits).elements == 0, span.elements, span.state_bits);
  CHECK(span.state_bits >= 16 || step.rule == Rule::Adam, span.state_bits, static_cast<int>(step.rule));
  return kernels_of(isa).update(step, span);
}

UpdateSpan part_of(const UpdateSpan& span, std::int64_t first, std::int64_t elements) {
  CHECK(first >= 0 && elements >= 0 && elements <= span.elements - first);
  UpdateSpan part = span;
  if (span.gradient != nullptr)
    part.gradient = static_cast<const std::byte*>(span.gradient) + first * size_of(span.gradient_type);
  const StateBlock block = state_block(span.state_bits);
  CHECK(first % block.elements == 0, first, span.state_bits);
  const auto moved = [&](void* moments) {
    return moments == nullptr ? nullptr : static_cast<std::byte*>(moments) + first / block.elements * block.bytes;
  };
  part.m = moved(span.m);
  part.v = moved(span.v);
  if (span.master != nullptr) part.master += first;
  if (span.parameter != nullptr)
    part.parameter = static_cast<std::byte*>(span.parameter) + first * size_of(span.parameter_type);
  if (span.old_parameter != nullptr)
    part.old_parameter = static_cast<const std::byte*>(span.old_parameter) + first * size_of(span.parameter_type);
  if (span.master_low != nullptr) part.master_low += first;
  part.first_element += first;
  part.elements = elements;
  return part;
}

UpdateSpan chunk_of(const UpdateSpan& span, int thread, int threads) {
  CHECK(thread >= 0 && thread < threads);
  const std::int64_t unit = std::max(kChunkElements, state_block(span.state_bits).elements);
  const std::int64_t units = (span.elements + unit - 1) / unit;
  const auto begin_of = [&](int t) { return std::min(span.elements, units * t / threads * unit); };
  const std::int64_t begin = begin_of(thread);
  return part_of(span, begin, begin_of(thread + 1) - begin);
}

}  // namespace tandem
