#include <ATen/ops/mean.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// Numbers that are averaged together are a column: [batch, sequence, apart * hidden].
at::Tensor sequences(const at::Tensor& tokens, const Attributes& how) {
  return tokens.view({-1, how.integer("sequence"), how.integer("apart", 1) * tokens.size(1)});
}

at::Tensor means(const at::Tensor& out, const Attributes& how) {
  return out.view({-1, how.integer("apart", 1) * out.size(1)});
}

void forward(Arguments& a) {
  at::Tensor out = means(a.out[0], a.call.how);
  at::mean_out(out, sequences(a.in[0], a.call.how), 1);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    const at::Tensor by_sequence = sequences(out, a.call.how);
    by_sequence.copy_(means(a.output_gradient, a.call.how).unsqueeze(1).expand_as(by_sequence));
    out.div_(by_sequence.size(1));
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {sequences(c.in[0], c.call.how).mean(1).view({-1, c.in[0].size(1)})};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(mean_tokens, forward, backward, reference)
