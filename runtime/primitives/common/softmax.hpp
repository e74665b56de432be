// The backward of a softmax that was made in fp32, into a gradient of any precision.
#pragma once

#include <ATen/ops/_softmax_backward_data.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// Of each row of `probabilities`, given their gradient.
inline void softmax_backward(const GradientOut& gradient, const at::Tensor& grad, const at::Tensor& probabilities) {
  gradient.make([&](at::Tensor out) {
    if (out.scalar_type() == at::kFloat)
      at::_softmax_backward_data_out(out, grad, probabilities, 1, at::kFloat);
    else
      out.copy_(at::_softmax_backward_data(grad, probabilities, 1, at::kFloat));
  });
}

}  // namespace tandem
