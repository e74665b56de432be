// What attention with a kernel and attention of products have in common. Tensors of heads are
// [batch, heads, positions, size].
#pragma once

#include <ATen/core/Tensor.h>

#include "core/model/attention_shape.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// What queries may see, and how far it is.
struct Positions {
  std::int64_t heads = 1, queries = 1, keys = 1;
  std::int64_t first = 0;   // the first query's place among the keys
  std::int64_t window = 0;  // as of AttentionSizes
  bool causal = false, alibi = false;
};
// What is added to scores for positions, [1 or heads, queries, keys]: 0, by distance, or minus infinity.
at::Tensor position_mask(const Positions& positions, const at::TensorOptions& options);

struct AttentionCall {
  explicit AttentionCall(const Call& call) : sizes(call.how, call.shapes) {}
  AttentionSizes sizes;
  double scale() const;

  // Views of rows [batch positions, heads size].
  at::Tensor of_queries(const at::Tensor& rows) const;
  at::Tensor of_keys(const at::Tensor& rows) const;
  // Each head of keys or values as often as heads of queries read it: a copy, where that is more than once.
  at::Tensor repeated(const at::Tensor& keys) const;
  // Takes the gradient of repeated keys or values: the sum over those that read a head.
  void take_repeated(const GradientOut& gradient, const at::Tensor& of_repeated) const;
  at::Tensor mask(const at::TensorOptions& options) const;
};

// By products with a softmax between them, as autograd does them: probabilities in memory.
void composed_attention(Arguments& a);
void composed_attention_backward(Arguments& a);
at::Tensor composed_attention_reference(const ReferenceCall& c);

}  // namespace tandem
