#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/sum.h>

#include <vector>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// A number for each channel, to be read at every position.
at::Tensor everywhere(const at::Tensor& channels, std::int64_t rank) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank), 1);
  sizes[0] = channels.size(0), sizes[1] = channels.size(1);
  return channels.view(sizes);
}

void forward(Arguments& a) { at::add_out(a.out[0], a.in[0], everywhere(a.in[1], a.in[0].dim())); }

void backward(Arguments& a) {
  const at::Tensor& grad = a.output_gradient;
  if (a.input_gradients[1].wanted())
    a.input_gradients[1].make([&](const at::Tensor& out) {
      std::vector<std::int64_t> positions;
      for (std::int64_t i = 2; i < grad.dim(); ++i) positions.push_back(i);
      at::Tensor to = everywhere(out, grad.dim());
      at::sum_out(to, grad, positions, /*keepdim=*/true);
    });
  if (a.input_gradients[0].wanted()) a.input_gradients[0].take(grad);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {c.in[0] + everywhere(c.in[1], c.in[0].dim())}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(add_channels, forward, backward, reference)
