// Lion (Chen et al., NeurIPS 2023, arXiv 2302.06675, Program 1): each element moves by the learning rate, along the
// sign of a mean of its momentum and its gradient. Products and sums are fused as LibTorch's mul_ and add_(alpha) are.
#pragma once

#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

struct LionRule {
  static constexpr int kMoments = 1;

  template <class Number>
  static TANDEM_HOST_DEVICE void update(const UpdateStep& step, Number gradient, UpdatedElement<Number>& element) {
    using rounded::fused_multiply_add, rounded::multiply, rounded::sign;
    gradient = multiply(gradient, Number(step.gradient_scale));
    if (step.decay == WeightDecay::Decoupled) element.master = multiply(element.master, Number(step.decay_factor));
    const Number mean = fused_multiply_add(gradient, Number(step.m_weight), multiply(element.m, Number(step.beta1)));
    element.master = fused_multiply_add(sign(mean), Number(step.negative_step_size), element.master);
    element.m = fused_multiply_add(gradient, Number(step.v_weight), multiply(element.m, Number(step.beta2)));
  }
};

}  // namespace tandem
