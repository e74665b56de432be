#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const std::int64_t batch = a.out[0].size(0), channels = a.out[0].size(1);
  a.out[0].view({batch, channels, -1}).copy_(a.in[0].view({batch, -1, channels}).transpose(1, 2));
}

void backward(Arguments& a) {
  const at::Tensor& grad = a.output_gradient;
  const at::Tensor tokens = grad.view({grad.size(0), grad.size(1), -1}).transpose(1, 2);
  a.input_gradients[0].viewed([&](const at::Tensor& t) { return t.view(tokens.sizes()); }).take(tokens);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor& tokens = c.in[0];
  const auto& sizes = c.call.shapes.out[0].dims;
  return {tokens.view({sizes[0], -1, sizes[1]}).transpose(1, 2).reshape({sizes.data(), sizes.size()})};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(image_of, forward, backward, reference)
