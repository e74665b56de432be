// The pieces that transformer bodies are made of: each performs the same LibTorch kernels as whole-graph autograd does,
// into given outputs. Must not know ops or graphs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "runtime/bodies/common/operands.hpp"

namespace tandem {

struct AttentionShape {
  std::int64_t batch, sequence, heads, head_size;
  bool causal, fused;
};

// Work::sizes of the transformer families' bodies, in this order.
struct TransformerCall {
  explicit TransformerCall(const Operands& o)
      : batch(o.size(0)),
        sequence(o.size(1)),
        hidden(o.size(2)),
        heads(o.size(3)),
        vocabulary(o.size(4)),
        micro_batches(o.size(5)),
        tied(o.size(6) != 0),
        accumulates(o.size(7) != 0),
        loss_tiles(o.size(8)),
        fused(o.size(9) != 0) {}
  std::int64_t batch, sequence, hidden, heads, vocabulary, micro_batches;
  bool tied, accumulates;
  std::int64_t loss_tiles;
  bool fused;
  std::int64_t tokens() const { return batch * sequence; }
  std::int64_t width() const { return 4 * hidden; }
  AttentionShape attention(bool causal) const { return {batch, sequence, heads, hidden / heads, causal, fused}; }
};

// out = x weight^T + bias, of the bucket's fields <name>.weight and <name>.bias. `out` may not be x.
void linear_out(at::Tensor out, const at::Tensor& x, const Bucket& parameters, const std::string& name);
// out = grad weight: the gradient of linear's input.
void linear_input_gradient(at::Tensor out, const at::Tensor& grad, const at::Tensor& weight);

struct NormResult {
  at::Tensor out, mean, rstd;
};
NormResult norm(const at::Tensor& x, const Bucket& parameters, const std::string& name, double epsilon);
// The same into saved tensors.
void norm_out(const NormResult& saved, const at::Tensor& x, const Bucket& parameters, const std::string& name,
              double epsilon);
// Mean and deviation of a result into saved tensors.
void keep_statistics(const NormResult& saved, const NormResult& result);

struct AttentionResult {
  at::Tensor out;   // [tokens, hidden]
  at::Tensor kept;  // fused: the log-sum-exp, a number a token and head in the kernel's own order; unfused: the softmax
};
// `next` gives the tensor of a shape: the next operand to read, or to write.
template <typename Next>
AttentionResult saved_attention(const TransformerCall& s, const Next& next) {
  const at::Tensor out = next({s.tokens(), s.hidden});
  if (s.fused) return {out, next({s.batch, s.sequence, s.heads}, at::kFloat)};
  return {out, next({s.batch * s.heads, s.sequence, s.sequence})};
}
// Of qkv [tokens, 3 hidden].
AttentionResult attention(const at::Tensor& qkv, AttentionShape shape);
void attention_out(const AttentionResult& saved, const at::Tensor& qkv, AttentionShape shape);
// The gradient of qkv, given that of the attention's output.
void attention_backward(const at::Tensor& qkv_gradient, const at::Tensor& grad, const at::Tensor& qkv,
                        const AttentionResult& saved, AttentionShape shape);

// From the gradient of the projected attention to that of qkv (fields projection and qkv); `input` is what qkv was made
// of.
at::Tensor projected_attention_backward(const at::Tensor& grad, const Bucket& parameters, const at::Tensor& qkv,
                                        const AttentionResult& saved, const at::Tensor& input, AttentionShape shape,
                                        const Gradients& gradients);

// Mean cross entropy over targets other than kIgnoredTarget. Returns the loss, a scalar.
at::Tensor cross_entropy(at::Tensor log_probabilities, at::Tensor target_count, const at::Tensor& logits,
                         const at::Tensor& targets);
// The gradient of loss / micro_batches with respect to the logits, times the loss scale if there is one (undefined:
// none).
void cross_entropy_backward(at::Tensor logits_gradient, const at::Tensor& log_probabilities, const at::Tensor& targets,
                            const at::Tensor& target_count, std::int64_t micro_batches, const at::Tensor& loss_scale);

inline constexpr std::int64_t kIgnoredTarget = -100;  // as torch's cross_entropy
inline constexpr double kGptNormEpsilon = 1e-5;       // GPT-2
inline constexpr double kBertNormEpsilon = 1e-12;     // BERT

std::int64_t bits_of(double value);

}  // namespace tandem
