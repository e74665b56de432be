// Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019). The order of operations is that of
// LibTorch 2.11's CPU kernel (aten/src/ATen/native/cpu/FusedAdamKernel.cpp) as its AVX2 and AVX-512 binaries compute
// whole vectors; which of its operations they fuse was found by trial.
#pragma once

#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

struct AdamRule {
  static constexpr int kMoments = 2;

  template <class Number>
  static TANDEM_HOST_DEVICE void update(const UpdateStep& step, Number gradient, UpdatedElement<Number>& element) {
    using rounded::add, rounded::divide, rounded::fused_multiply_add, rounded::multiply, rounded::square_root,
        rounded::subtract;
    Number& master = element.master;
    gradient = multiply(gradient, Number(step.gradient_scale));
    if (step.decay == WeightDecay::Coupled)
      gradient = fused_multiply_add(master, Number(step.decay_factor), gradient);
    else if (step.decay == WeightDecay::Decoupled)
      master = multiply(master, Number(step.decay_factor));
    element.m = fused_multiply_add(Number(step.m_weight), subtract(gradient, element.m),
                                   step.m_from_gradient ? gradient : element.m);
    element.v = fused_multiply_add(multiply(Number(step.v_weight), gradient), gradient,
                                   multiply(element.v, Number(step.beta2)));
    const Number denominator =
        add(divide(square_root(element.v), Number(step.v_root_correction)), Number(step.epsilon));
    master = add(master, divide(multiply(Number(step.negative_step_size), element.m), denominator));
  }
};

}  // namespace tandem
