#include "runtime/primitives/common/attention_kernels.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

AttentionShape shape_of(const Arguments& a) {
  const std::int64_t heads = a.call.how.integer("heads"), sequence = a.call.how.integer("sequence");
  const Shape& qkv = a.call.shapes.in[0];
  return {qkv.rows() / sequence,
          sequence,
          heads,
          qkv.columns() / 3 / heads,
          a.call.how.integer("causal") != 0,
          a.call.how.integer("fused", 1) != 0};
}

void forward(Arguments& a) {
  if (a.saved[0].defined())
    attention_out({a.out[0], a.saved[0]}, a.in[0], shape_of(a));
  else
    a.out[0].copy_(attention(a.in[0], shape_of(a)).out);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    attention_backward(out, a.output_gradient, a.in[0], {a.out[0], a.saved[0]}, shape_of(a));
  });
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(attention, forward, backward)
