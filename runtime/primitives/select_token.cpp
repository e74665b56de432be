#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// As [batch, length, hidden].
at::Tensor sequences(const at::Tensor& tokens, std::int64_t length) {
  return tokens.view({-1, length, tokens.size(1)});
}

at::Tensor selected(const at::Tensor& tokens, const Attributes& how) {
  return sequences(tokens, how.integer("sequence")).narrow(1, how.integer("index"), how.integer("count", 1));
}

void forward(Arguments& a) { sequences(a.out[0], a.call.how.integer("count", 1)).copy_(selected(a.in[0], a.call.how)); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    out.zero_();
    selected(out, a.call.how).copy_(sequences(a.output_gradient, a.call.how.integer("count", 1)));
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {selected(c.in[0], c.call.how).flatten(0, 1)}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(select_token, forward, backward, reference)
