#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

at::Tensor part(const at::Tensor& whole, const Call& call) {
  return whole.narrow(1, call.how.integer("first"), call.how.integer("count"));
}

void forward(Arguments& a) { a.out[0].copy_(part(a.in[0], a.call)); }

// Other columns' gradients are zero, or what other readers have made them.
void backward(Arguments& a) {
  const GradientOut& gradient = a.input_gradients[0];
  at::Tensor target = gradient.target();
  if (!gradient.adds()) {
    target.zero_();
    part(target, a.call).copy_(a.output_gradient);
    return;
  }
  if (gradient.base().defined()) target.copy_(gradient.base());
  part(target, a.call).add_(a.output_gradient);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {part(c.in[0], c.call)}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(columns, forward, backward, reference)
