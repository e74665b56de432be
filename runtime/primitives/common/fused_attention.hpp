// Attention by LibTorch's one kernel without scores in memory. Tensors of heads are [batch, heads, positions, size].
// Must not know calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace tandem {

// Heads of keys and values may be fewer than those of queries, which then share them.
struct FusedAttention {
  at::Tensor query, key, value;
  std::optional<at::Tensor> mask;  // added to scores: [1, 1 or heads, queries, keys], rows of which lie in whole blocks
  bool causal = false;             // of each query, keys up to its place; not beside a mask
  double scale = 1;                // of scores

  // Of scores: FlashAttention takes 16-bit numbers only, and nothing that is added to scores.
  bool by_flash() const { return query.is_cuda() && query.scalar_type() != at::kFloat && !mask.has_value(); }
  // The kernel reads grouped heads as they are.
  bool reads_groups() const { return by_flash() || !query.is_cuda(); }
};

// `logsumexp`: [batch, heads, queries], fp32.
struct FusedResult {
  at::Tensor out, logsumexp;
};
FusedResult fused_attention(const FusedAttention& f);

// Of the products of queries with these keys, where `out` and `logsumexp` are those of all keys that queries saw.
struct FusedGradients {
  at::Tensor query, key, value;  // key, value: of as many heads as queries have, unless the kernel reads groups
};
FusedGradients fused_attention_backward(const FusedAttention& f, const at::Tensor& output_gradient,
                                        const at::Tensor& out, const at::Tensor& logsumexp);

// Of gradients of keys or values by heads of queries, the sums by those of keys.
at::Tensor by_key_heads(const FusedAttention& f, const at::Tensor& gradient);

}  // namespace tandem
