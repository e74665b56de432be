#include <ATen/ops/cat.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { at::cat_out(a.out[0], a.in, a.call.how.integer("axis")); }

void backward(Arguments& a) {
  const std::int64_t axis = a.call.how.integer("axis");
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < a.input_gradients.size(); ++i) {
    const std::int64_t size = a.call.shapes.in[i].dims[static_cast<std::size_t>(axis)];
    if (a.input_gradients[i].wanted()) a.input_gradients[i].take(a.output_gradient.narrow(axis, begin, size));
    begin += size;
  }
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {at::cat(c.in, c.call.how.integer("axis"))}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(concat, forward, backward, reference)
