#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// [batch, sequence, columns]
at::Tensor sequences(const Call& call, const at::Tensor& rows) {
  return rows.view({-1, call.how.integer("sequence"), rows.size(1)});
}

void forward(Arguments& a) {
  at::Tensor out = sequences(a.call, a.out[0]);
  if (a.out[0].data_ptr() == a.in[0].data_ptr())
    out.add_(a.weights[0]);
  else
    at::add_out(out, sequences(a.call, a.in[0]), a.weights[0]);
}

void backward(Arguments& a) {
  for (const GradientOut& gradient : a.input_gradients)
    if (gradient.wanted()) gradient.take(a.output_gradient);
  if (a.wanted.weights == 0) return;
  const at::Tensor grad = sequences(a.call, a.output_gradient);
  a.weight_gradients[0].make([&](at::Tensor out) { at::sum_out(out, grad, 0); });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {(sequences(c.call, c.in[0]) + c.weights[0]).flatten(0, 1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(positions, forward, backward, reference)
