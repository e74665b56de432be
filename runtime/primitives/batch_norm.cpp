#include <ATen/ops/batch_norm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>

#include <tuple>

#include "runtime/primitives/common/norm_gradients.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const auto [out, mean, rstd] = at::native_batch_norm(a.in[0], a.weights[0], a.weights[1], {}, {}, /*training=*/true,
                                                       /*momentum=*/0, a.call.how.number("epsilon"));
  a.out[0].copy_(out);
  if (!a.saved[0].defined()) return;
  a.saved[0].copy_(mean);
  a.saved[1].copy_(rstd);
}

void backward(Arguments& a) {
  const at::Tensor& x = a.in[0];
  // The CPU's kernel takes statistics in the input's precision, the GPU's in fp32, in which they are kept.
  const auto statistic = [&](const at::Tensor& kept) { return x.is_cuda() ? kept : kept.to(x.scalar_type()); };
  const auto [grad_input, grad_weight, grad_bias] = at::native_batch_norm_backward(
      a.output_gradient, x, a.weights[0], {}, {}, statistic(a.saved[0]), statistic(a.saved[1]), /*train=*/true,
      a.call.how.number("epsilon"), wanted_of_norm(a));
  take_norm_gradients(a, grad_input, grad_weight, grad_bias);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {at::batch_norm(c.in[0], c.weights[0], c.weights[1], {}, {}, /*training=*/true, /*momentum=*/0,
                         c.call.how.number("epsilon"), /*cudnn_enabled=*/false)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(batch_norm, forward, backward, reference)
