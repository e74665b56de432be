#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>

#include "runtime/primitives/common/attention_pieces.hpp"
#include "runtime/primitives/common/fused_attention.hpp"

namespace tandem {
namespace {

using at::Tensor;

FusedAttention fused(const Arguments& a, const AttentionCall& call) {
  const bool masked = call.sizes.masked();
  FusedAttention f{call.of_queries(a.in[0]),     call.of_keys(a.in[1]), call.of_keys(a.in[2]), std::nullopt,
                   call.sizes.causal && !masked, call.scale()};
  if (masked) f.mask = call.mask(f.query.options()).unsqueeze(0);
  return f;
}

// What is saved as [batch, heads, queries]. A GPU's kernel writes and reads that order.
Tensor by_heads(const Tensor& saved, const AttentionSizes& s) {
  return saved.is_cuda() ? saved.view({s.batch, s.heads, s.queries}) : saved.transpose(1, 2);
}

void forward(Arguments& a) {
  const AttentionCall call(a.call);
  if (!call.sizes.fused()) return composed_attention(a);
  const FusedAttention f = fused(a, call);
  const FusedResult result = fused_attention(f);
  call.of_queries(a.out[0]).copy_(result.out);
  if (a.saved[0].defined()) by_heads(a.saved[0], call.sizes).copy_(result.logsumexp);
}

void backward(Arguments& a) {
  const AttentionCall call(a.call);
  if (!call.sizes.fused()) return composed_attention_backward(a);
  const FusedAttention f = fused(a, call);
  const FusedGradients made = fused_attention_backward(f, call.of_queries(a.output_gradient), call.of_queries(a.out[0]),
                                                       by_heads(a.saved[0], call.sizes));
  const std::vector<GradientOut>& gradients = a.input_gradients;
  if (gradients[0].wanted())
    gradients[0].viewed([&](const Tensor& rows) { return call.of_queries(rows); }).take(made.query);
  const auto take = [&](const GradientOut& gradient, const Tensor& of_heads) {
    if (!gradient.wanted()) return;
    gradient.viewed([&](const Tensor& rows) { return call.of_keys(rows); }).take(by_key_heads(f, of_heads));
  };
  take(gradients[1], made.key);
  take(gradients[2], made.value);
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const AttentionCall call(c.call);
  const AttentionSizes& s = call.sizes;
  if (!s.fused()) return {composed_attention_reference(c)};
  std::optional<Tensor> mask;
  if (s.masked()) mask = call.mask(c.in[0].options()).unsqueeze(0);
  const Tensor out = at::scaled_dot_product_attention(
      call.of_queries(c.in[0]), call.of_keys(c.in[1]), call.of_keys(c.in[2]), mask, /*dropout_p=*/0.0,
      s.causal && !s.masked(), call.scale(), /*enable_gqa=*/s.group() > 1);
  return {out.transpose(1, 2).reshape(c.in[0].sizes())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(qkv_attention, forward, backward, reference)
