// Stochastic gradient descent as torch.optim.SGD, without and with momentum (no dampening, not Nesterov's). Products
// and sums are fused as LibTorch's mul_ and add_(alpha) are.
#pragma once

#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

template <bool kMomentum>
struct SgdRule {
  static constexpr int kMoments = kMomentum ? 1 : 0;

  template <class Number>
  static TANDEM_HOST_DEVICE void update(const UpdateStep& step, Number gradient, UpdatedElement<Number>& element) {
    using rounded::add, rounded::fused_multiply_add, rounded::multiply;
    gradient = multiply(gradient, Number(step.gradient_scale));
    if (step.decay == WeightDecay::Coupled)
      gradient = fused_multiply_add(element.master, Number(step.decay_factor), gradient);
    if constexpr (kMomentum) gradient = element.m = add(multiply(element.m, Number(step.beta1)), gradient);
    element.master = fused_multiply_add(gradient, Number(step.negative_step_size), element.master);
  }
};

}  // namespace tandem
