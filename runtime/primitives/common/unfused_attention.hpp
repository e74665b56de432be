// Attention with scores and softmax in memory: the same LibTorch kernels as autograd's of two batched products and a
// softmax between them. Must not know ops or how heads lie in memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem {

// Views of [batch, heads, sequence, head_size].
struct Projections {
  at::Tensor query, key, value;
};

// out = probabilities value, probabilities [batch heads, sequence, sequence] = softmax(query key^T / sqrt(head_size)),
// without what a causal mask hides. `out` is a view as of a projection.
void unfused_attention_out(const at::Tensor& out, at::Tensor probabilities, const Projections& p, bool causal);

// The gradients of the projections, given that of `out`.
void unfused_attention_backward(const Projections& gradients, const at::Tensor& grad, const Projections& p,
                                const at::Tensor& probabilities);

// The same forward in functional LibTorch.
at::Tensor unfused_attention_reference(const Projections& p, bool causal);

}  // namespace tandem
