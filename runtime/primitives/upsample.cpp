#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest2d_backward.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { at::upsample_nearest2d_out(a.out[0], a.in[0], a.out[0].sizes().slice(2)); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](at::Tensor out) {
    at::upsample_nearest2d_backward_out(out, a.output_gradient, a.output_gradient.sizes().slice(2), out.sizes());
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const auto& sizes = c.call.shapes.out[0].dims;
  return {at::upsample_nearest2d(c.in[0], at::IntArrayRef(sizes.data() + 2, 2))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(upsample, forward, backward, reference)
