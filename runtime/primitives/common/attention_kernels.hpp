// LibTorch's attention over a packed [tokens, 3 hidden] tensor of queries, keys and values: fused kernels by device and
// type, or products and a softmax written out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tandem {

struct AttentionShape {
  std::int64_t batch, sequence, heads, head_size;
  bool causal, fused;
};

struct AttentionResult {
  at::Tensor out;   // [tokens, hidden]
  at::Tensor kept;  // fused: the log-sum-exp, a number a token and head in the kernel's own order; unfused: the softmax
};
AttentionResult attention(const at::Tensor& qkv, AttentionShape shape);
// The same into given places.
void attention_out(const AttentionResult& saved, const at::Tensor& qkv, AttentionShape shape);
// The gradient of qkv, given that of the attention's output.
void attention_backward(const at::Tensor& qkv_gradient, const at::Tensor& grad, const at::Tensor& qkv,
                        const AttentionResult& saved, AttentionShape shape);

}  // namespace tandem
