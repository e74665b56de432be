#include "runtime/primitives/common/cross_entropy.hpp"

#include <ATen/ops/cross_entropy_loss.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { a.out[0] = cross_entropy(a.saved[0], a.saved[1], a.in[0], a.in[1].flatten()); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    cross_entropy_backward(out, a.saved[0], a.in[1].flatten(), a.saved[1], a.micro_batches, a.loss_scale);
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor logits = counting_logits(c.in[0], c.in[0].size(1) - c.call.how.integer("padding", 0));
  return {at::cross_entropy_loss(logits, c.in[1].flatten())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(cross_entropy, forward, backward, reference)
