// 1-bit Adam's momentum, one element at a time: the CPU and CUDA call these, and agree to the bit.
#pragma once

#include <cstdint>

#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

TANDEM_ALWAYS_INLINE float momentum_to_send(float kept_weight, float kept, float gradient_weight, float gradient,
                                            float gradient_scale) {
  const float fresh = rounded::multiply(gradient_weight, rounded::multiply(gradient, gradient_scale));
  return rounded::add(rounded::multiply(kept_weight, kept), fresh);
}

TANDEM_ALWAYS_INLINE std::uint32_t sign_bit(float momentum) { return momentum >= 0 ? 1 : 0; }

// The scale, or its opposite where the bit is not set.
TANDEM_ALWAYS_INLINE float sent_number(std::uint32_t scale_bits, std::uint32_t bit) {
  return bits_as_float(scale_bits ^ (bit ^ 1U) << 31U);
}

TANDEM_ALWAYS_INLINE float momentum_to_keep(float momentum, float gradient_weight, float sent, bool error_feedback) {
  return rounded::subtract(error_feedback ? momentum : sent, rounded::multiply(gradient_weight, sent));
}

}  // namespace tandem
