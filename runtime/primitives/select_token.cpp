#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

at::Tensor selected(const at::Tensor& tokens, const Attributes& how) {
  return tokens.view({-1, how.integer("sequence"), tokens.size(1)}).select(1, how.integer("index"));
}

void forward(Arguments& a) { a.out[0].copy_(selected(a.in[0], a.call.how)); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    out.zero_();
    selected(out, a.call.how).copy_(a.output_gradient);
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {selected(c.in[0], c.call.how)}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(select_token, forward, backward, reference)
