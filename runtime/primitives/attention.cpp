#include <ATen/ops/scaled_dot_product_attention.h>

#include "runtime/primitives/common/attention_kernels.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/primitives/common/unfused_attention.hpp"

namespace tandem {
namespace {

AttentionShape shape_of(const Call& call) {
  const std::int64_t heads = call.how.integer("heads"), sequence = call.how.integer("sequence");
  const Shape& qkv = call.shapes.in[0];
  return {qkv.rows() / sequence,
          sequence,
          heads,
          qkv.columns() / 3 / heads,
          call.how.integer("causal") != 0,
          call.how.integer("fused", 1) != 0};
}

void forward(Arguments& a) {
  if (a.saved[0].defined())
    attention_out({a.out[0], a.saved[0]}, a.in[0], shape_of(a.call));
  else
    a.out[0].copy_(attention(a.in[0], shape_of(a.call)).out);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) {
    attention_backward(out, a.output_gradient, a.in[0], {a.out[0], a.saved[0]}, shape_of(a.call));
  });
}

// Of views that are not copied: what a kernel adds up, and in which order, may follow from how its operands lie.
std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const AttentionShape s = shape_of(c.call);
  const auto heads = [&](const at::Tensor& rows) {
    return rows.view({s.batch, s.sequence, s.heads, s.head_size}).transpose(1, 2);
  };
  const std::vector<at::Tensor> parts = c.in[0].split(s.heads * s.head_size, 1);
  const Projections p{heads(parts[0]), heads(parts[1]), heads(parts[2])};
  const at::Tensor out = s.fused ? at::scaled_dot_product_attention(p.query, p.key, p.value, {}, 0.0, s.causal)
                                 : unfused_attention_reference(p, s.causal);
  return {out.transpose(1, 2).reshape({-1, s.heads * s.head_size})};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(attention, forward, backward, reference)
