// What all rules by which one element is updated share: what a step is, correctly rounded arithmetic, and the look at
// what became of an element. Scalar code, vectors and CUDA call a rule's one template (rules/), each with its own
// arithmetic, and agree to the bit. Every rounding is an explicit call; files that use it are compiled with
// -ffp-contract=off, since GCC would fuse products and sums otherwise, those of its vector intrinsics too. A NaN's
// payload is unspecified: processors differ in whose they keep.
#pragma once

#include <cmath>

#include "core/base/host_device.hpp"

namespace tandem {

// Coupled: the decay is a part of the gradient (Adam, SGD). Decoupled: it shrinks the parameter itself (AdamW, Lion).
enum class WeightDecay : unsigned char { None, Coupled, Decoupled };

enum class Rule : unsigned char { Adam, Lion, Sgd, Momentum };  // a file of rules/ each; SGD's has two

// What all elements of one optimizer step share, each value rounded once from double. A rule reads what it needs.
struct UpdateStep {
  Rule rule;
  float gradient_scale;  // the clip coefficient, or 1 / loss scale
  float beta1;           // Momentum: the momentum
  float m_weight;        // Adam: m moves by this part of gradient - m, from m, or ...
  bool m_from_gradient;  // ... from the gradient, where 1 - beta1 is 1/2 or more (then m_weight = -beta1); Lion: 1 -
                         // beta1
  float beta2;
  float v_weight;           // 1 - beta2
  float v_root_correction;  // sqrt(1 - beta2^step)
  float epsilon;
  float negative_step_size;  // -learning rate; Adam: / (1 - beta1^step)
  WeightDecay decay;
  float decay_factor;  // coupled: weight decay; decoupled: 1 - learning rate * weight decay
};

// Of a float or a double, each correctly rounded; a vector brings its own of the same names.
namespace rounded {

TANDEM_ALWAYS_INLINE float fused_multiply_add(float a, float b, float c) {
  return TANDEM_HOST_OR_DEVICE(std::fma(a, b, c), __fmaf_rn(a, b, c));
}
TANDEM_ALWAYS_INLINE float multiply(float a, float b) { return TANDEM_HOST_OR_DEVICE(a * b, __fmul_rn(a, b)); }
TANDEM_ALWAYS_INLINE float add(float a, float b) { return TANDEM_HOST_OR_DEVICE(a + b, __fadd_rn(a, b)); }
TANDEM_ALWAYS_INLINE float subtract(float a, float b) { return TANDEM_HOST_OR_DEVICE(a - b, __fsub_rn(a, b)); }
TANDEM_ALWAYS_INLINE float divide(float a, float b) { return TANDEM_HOST_OR_DEVICE(a / b, __fdiv_rn(a, b)); }
TANDEM_ALWAYS_INLINE float square_root(float a) { return TANDEM_HOST_OR_DEVICE(std::sqrt(a), __fsqrt_rn(a)); }
TANDEM_ALWAYS_INLINE float sign(float a) { return static_cast<float>((0 < a) - (a < 0)); }  // 0 of a NaN

TANDEM_ALWAYS_INLINE double multiply(double a, double b) { return TANDEM_HOST_OR_DEVICE(a * b, __dmul_rn(a, b)); }
TANDEM_ALWAYS_INLINE double add(double a, double b) { return TANDEM_HOST_OR_DEVICE(a + b, __dadd_rn(a, b)); }
TANDEM_ALWAYS_INLINE double subtract(double a, double b) { return TANDEM_HOST_OR_DEVICE(a - b, __dsub_rn(a, b)); }
TANDEM_ALWAYS_INLINE double divide(double a, double b) { return TANDEM_HOST_OR_DEVICE(a / b, __ddiv_rn(a, b)); }
TANDEM_ALWAYS_INLINE double square_root(double a) { return TANDEM_HOST_OR_DEVICE(std::sqrt(a), __dsqrt_rn(a)); }

}  // namespace rounded

// Number: float, or a vector of floats that converts from one and has the functions above. A rule that keeps fewer
// moments leaves the rest alone.
template <class Number>
struct UpdatedElement {
  Number master, m, v;
};

// What becomes of updates is looked at as they are made, when each number is at hand: a watch is 0 while all that it
// saw is finite, and NaN from then on. `limit`: 1, or what a number is multiplied by first, so that those overflow that
// the parameter's type cannot hold.
template <class Number>
TANDEM_HOST_DEVICE inline Number watch_finite(Number watch, Number seen, float limit) {
  using rounded::fused_multiply_add, rounded::multiply;
  return fused_multiply_add(multiply(seen, Number(limit)), Number(0.0F), watch);
}

// From 65520 on, fp16 rounds to infinity: the largest fp32 number over that.
inline constexpr float kFloat16Limit = 0x1.001p112F;

}  // namespace tandem
