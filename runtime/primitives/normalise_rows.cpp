#include <ATen/TensorOperators.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  at::Tensor length = saved_or_apart(a, 0);
  at::norm_out(length, a.in[0], 2, 1, /*keepdim=*/true);
  at::div_out(a.out[0], a.in[0], length);
}

void backward(Arguments& a) {
  const at::Tensor &grad = a.output_gradient, &x = a.in[0], &length = a.saved[0];
  const at::Tensor direction = at::div(x, length);
  at::Tensor along;  // the length's gradient
  {
    const at::Tensor over = at::div(direction, length);
    along = at::neg(grad).mul_(over).sum(1, /*keepdim=*/true);
  }
  const at::Tensor of_length = direction.masked_fill(length.eq(0), 0).mul_(along);
  a.input_gradients[0].take(at::div(grad, length).add_(of_length));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {c.in[0] / at::norm(c.in[0], 2, 1, /*keepdim=*/true)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(normalise_rows, forward, backward, reference)
