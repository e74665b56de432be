#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

at::Tensor part(const at::Tensor& whole, const Arguments& a) {
  return whole.narrow(1, a.call.how.integer("first"), a.call.how.integer("count"));
}

void forward(Arguments& a) { a.out[0].copy_(part(a.in[0], a)); }

// Other columns' gradients are zero, or what other readers have made them.
void backward(Arguments& a) {
  const GradientOut& gradient = a.input_gradients[0];
  at::Tensor target = gradient.target();
  if (!gradient.adds()) {
    target.zero_();
    part(target, a).copy_(a.output_gradient);
    return;
  }
  if (gradient.base().defined()) target.copy_(gradient.base());
  part(target, a).add_(a.output_gradient);
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(columns, forward, backward)
