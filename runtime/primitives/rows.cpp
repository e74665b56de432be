#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { a.out[0].copy_(a.in[0].narrow(0, 0, a.out[0].size(0))); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    out.zero_();
    out.narrow(0, 0, a.output_gradient.size(0)).copy_(a.output_gradient);
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {c.in[0].narrow(0, 0, c.call.shapes.out[0].dims[0])};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(rows, forward, backward, reference)
