#include <ATen/ops/cat.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// As [batch, sequence, hidden], with the tokens or without.
at::Tensor sequences(const at::Tensor& tokens, std::int64_t length) {
  return tokens.view({-1, length, tokens.size(1)});
}

std::int64_t count_of(const Call& call) { return call.how.integer("count", 1); }

void forward(Arguments& a) {
  const std::int64_t length = a.call.how.integer("sequence"), count = count_of(a.call);
  const at::Tensor out = sequences(a.out[0], length + count);
  out.narrow(1, 0, count).copy_(a.weights[0].expand({out.size(0), count, out.size(2)}));
  out.narrow(1, count, length).copy_(sequences(a.in[0], length));
}

void backward(Arguments& a) {
  const std::int64_t length = a.call.how.integer("sequence"), count = count_of(a.call);
  const at::Tensor grad = sequences(a.output_gradient, length + count);
  if (a.wanted.weights != 0)
    a.weight_gradients[0].take(count == 1 ? at::sum(grad.narrow(1, 0, 1), at::IntArrayRef({0, 1}))
                                          : at::sum(grad.narrow(1, 0, count), at::IntArrayRef({0})));
  const GradientOut& input = a.input_gradients[0];
  if (!input.wanted()) return;
  input.viewed([&](const at::Tensor& t) { return sequences(t, length); }).take(grad.narrow(1, count, length));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor tokens = sequences(c.in[0], c.call.how.integer("sequence"));
  return {at::cat({c.weights[0].expand({tokens.size(0), count_of(c.call), tokens.size(2)}), tokens}, 1).flatten(0, 1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(prepend_token, forward, backward, reference)
