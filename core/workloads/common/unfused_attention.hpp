// Attention with its scores and their softmax in memory, as PyTorch and Megatron-LM computed it before FlashAttention
// (arXiv 2205.14135): two batched products, and kernels over [batch, heads, sequence, sequence] between them; the
// softmax is saved for the backward. Must not know blocks or steps.
#pragma once

#include <vector>

#include "core/workloads/common/transformer.hpp"

namespace tandem {

// In the order that the bodies launch them (runtime/bodies/common/unfused_attention.hpp).
std::vector<Kernel> unfused_attention_forward_kernels(const TransformerSizes& s);
std::vector<Kernel> unfused_attention_backward_kernels(const TransformerSizes& s);

// Follow what the bodies allocate. `saves`: into given tensors; without, output and softmax are temporaries, too.
void touch_unfused_attention(WorkspaceMeter& meter, const TransformerSizes& s, bool saves);
void touch_unfused_attention_backward(WorkspaceMeter& meter, const TransformerSizes& s);

}  // namespace tandem
