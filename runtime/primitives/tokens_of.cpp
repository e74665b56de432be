#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const std::int64_t batch = a.in[0].size(0), channels = a.in[0].size(1);
  a.out[0].view({batch, -1, channels}).copy_(a.in[0].view({batch, channels, -1}).transpose(1, 2));
}

void backward(Arguments& a) {
  const at::IntArrayRef sizes = a.input_gradients[0].target().sizes();
  a.input_gradients[0].take(a.output_gradient.view({sizes[0], -1, sizes[1]}).transpose(1, 2).view(sizes));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const std::int64_t batch = c.in[0].size(0), channels = c.in[0].size(1);
  return {c.in[0].view({batch, channels, -1}).transpose(1, 2).reshape({-1, channels})};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(tokens_of, forward, backward, reference)
