#include <ATen/ops/bmm.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// [experts, rows, columns].
at::Tensor by_expert(const at::Tensor& rows, const Call& call) {
  return rows.view({call.how.integer("experts"), -1, rows.size(1)});
}

void forward(Arguments& a) {
  at::Tensor out = by_expert(a.out[0], a.call);
  at::bmm_out(out, by_expert(a.in[0], a.call), a.weights[0].transpose(1, 2));
}

void backward(Arguments& a) {
  const at::Tensor grad = by_expert(a.output_gradient, a.call);
  if (a.input_gradients[0].wanted())
    a.input_gradients[0].make([&](const at::Tensor& out) {
      at::Tensor to = by_expert(out, a.call);
      at::bmm_out(to, grad, a.weights[0]);
    });
  if (a.wanted.weights != 0)
    a.weight_gradients[0].take(at::bmm(by_expert(a.in[0], a.call).transpose(1, 2), grad).transpose(1, 2));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {at::bmm(by_expert(c.in[0], c.call), c.weights[0].transpose(1, 2)).flatten(0, 1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(expert_linear, forward, backward, reference)
