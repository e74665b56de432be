#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include <tuple>

#include "runtime/primitives/common/norm_gradients.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const at::Tensor& x = a.in[0];
  const auto [out, mean, rstd] =
      at::native_layer_norm(x, {x.size(1)}, a.weights[0], a.weights[1], a.call.how.number("epsilon"));
  a.out[0].copy_(out);
  if (!a.saved[0].defined()) return;
  a.saved[0].copy_(mean.view_as(a.saved[0]));
  a.saved[1].copy_(rstd.view_as(a.saved[1]));
}

void backward(Arguments& a) {
  const at::Tensor& x = a.in[0];
  // The CPU's kernel takes statistics in the input's precision, the GPU's in fp32, in which they are kept.
  const auto statistic = [&](const at::Tensor& kept) { return x.is_cuda() ? kept : kept.to(x.scalar_type()); };
  const auto [grad_input, grad_weight, grad_bias] =
      at::native_layer_norm_backward(a.output_gradient, x, {x.size(1)}, statistic(a.saved[0]), statistic(a.saved[1]),
                                     a.weights[0], a.weights[1], wanted_of_norm(a));
  take_norm_gradients(a, grad_input, grad_weight, grad_bias);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {at::layer_norm(c.in[0], {c.in[0].size(1)}, c.weights[0], c.weights[1], c.call.how.number("epsilon"))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(layer_norm, forward, backward, reference)
