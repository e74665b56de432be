#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { a.out[0].view(a.in[0].sizes()).copy_(a.in[0]); }

void backward(Arguments& a) {
  a.input_gradients[0].make(
      [&](const at::Tensor& out) { out.view(a.output_gradient.sizes()).copy_(a.output_gradient); });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {c.in[0].flatten(1)}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(flatten, forward, backward, reference)
