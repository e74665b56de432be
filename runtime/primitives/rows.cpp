#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

at::Tensor selected(const at::Tensor& x, const Call& call) {
  const std::int64_t count = call.how.integer("count");
  return x.narrow(0, call.how.integer("first", 0) + call.how.integer("part", 0) * count, count);
}

void forward(Arguments& a) { a.out[0].copy_(selected(a.in[0], a.call)); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    out.zero_();
    selected(out, a.call).copy_(a.output_gradient);
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {selected(c.in[0], c.call)}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(rows, forward, backward, reference)
