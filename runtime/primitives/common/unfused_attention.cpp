#include "runtime/primitives/common/unfused_attention.hpp"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

using at::Tensor;

// [batch heads, sequence, head_size]
Tensor merged(const Tensor& heads) { return heads.contiguous().flatten(0, 1); }

double scale_of(const Tensor& heads) { return 1 / std::sqrt(static_cast<double>(heads.size(3))); }

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// [sequence, sequence] of scores.
Tensor later_keys(const Tensor& scores) {
  return at::ones({scores.size(1), scores.size(2)}, scores.options().dtype(at::kBool)).triu_(1);
}

}  // namespace

void unfused_attention_out(const Tensor& out, Tensor probabilities, const Projections& p, bool causal) {
  {
    const Tensor scores = at::empty_like(probabilities);
    scores.baddbmm_(merged(p.query), merged(p.key).transpose(1, 2), /*beta=*/0, scale_of(p.query));
    if (causal) scores.masked_fill_(later_keys(scores), kHidden);
    at::_softmax_out(probabilities, scores, 2, /*half_to_float=*/false);
  }
  out.copy_(at::bmm(probabilities, merged(p.value)).view(out.sizes()));
}

// Products and their order are autograd's, which scales what a product gives.
void unfused_attention_backward(const Projections& gradients, const Tensor& grad, const Projections& p,
                                const Tensor& probabilities) {
  const double scale = scale_of(p.query);
  Tensor grad_scores = at::empty_like(probabilities);
  {
    const Tensor grad_out = merged(grad);
    gradients.value.copy_(at::bmm(probabilities.transpose(1, 2), grad_out).view(p.value.sizes()));
    const Tensor grad_probabilities = at::bmm(grad_out, merged(p.value).transpose(1, 2));
    at::_softmax_backward_data_out(grad_scores, grad_probabilities, probabilities, 2, probabilities.scalar_type());
  }
  gradients.query.copy_(at::bmm(grad_scores, merged(p.key)).mul_(scale).view(p.query.sizes()));
  const Tensor grad_key = at::bmm(merged(p.query).transpose(1, 2), grad_scores).mul_(scale);
  gradients.key.copy_(grad_key.transpose(1, 2).unflatten(0, {p.key.size(0), p.key.size(1)}));
}

Tensor unfused_attention_reference(const Projections& p, bool causal) {
  const std::int64_t sequence = p.query.size(2);
  const Tensor none = at::empty({p.query.size(0) * p.query.size(1), sequence, sequence}, p.query.options());
  Tensor scores =
      at::baddbmm(none, merged(p.query), merged(p.key).transpose(1, 2), /*beta=*/0, /*alpha=*/scale_of(p.query));
  if (causal) scores = scores.masked_fill(later_keys(scores), kHidden);
  return at::bmm(at::softmax(scores, 2), merged(p.value)).view(p.query.sizes());
}

}  // namespace tandem
