#include "runtime/bodies/common/subspace_fit.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <numbers>

#include "core/transforms/subspace/subspace_ops.hpp"

namespace tandem {

void expand_projector(const at::Tensor& places, const at::Tensor& values, const at::Tensor& dense) {
  dense.zero_();
  dense.scatter_(1, places, values.to(dense.scalar_type()));
}

SubspaceFit::Side SubspaceFit::side_of(const Projector& projector, const at::Tensor& like, std::int64_t rank) {
  const std::int64_t rows = projector.values.size(0), nonzeros = projector.values.size(1);
  Side side;
  side.places = projector.places.to(at::kLong);
  side.values = projector.values;
  side.old_values = projector.values.clone();
  side.m = at::zeros_like(side.values);
  side.v = at::zeros_like(side.values);
  for (at::Tensor* matrix : {&side.dense, &side.product, &side.gradient})
    *matrix = at::empty({rows, rank}, like.options());
  // A fifth of what a value begins with: at the artifact's 0.1, fits with 16 non-zeros a row did not converge.
  side.rate = 0.2 * std::sqrt(static_cast<double>(rank) / static_cast<double>(rows * nonzeros));
  return side;
}

SubspaceFit::SubspaceFit(const at::Tensor& gradient, const Projector& left, const Projector& right, std::int64_t rank)
    : gradient_(gradient), left_(side_of(left, gradient, rank)), right_(side_of(right, gradient, rank)) {
  for (at::Tensor* matrix : {&s_, &left_square_, &right_square_, &a_, &b_, &t_})
    *matrix = at::empty({rank, rank}, gradient.options());
  square_norm_ = at::linalg_vector_norm(gradient_, 2, at::OptionalIntArrayRef(), false, at::kFloat).square_();
}

// |P P^T G Q Q^T - G|^2 = <S, P^T P S Q^T Q> - 2 <S, S> + <G, G>: nothing of G's size is made.
at::Tensor SubspaceFit::square_bias() {
  const at::Tensor &p = left_.dense, &q = right_.dense;
  expand_projector(left_.places, left_.values, p);
  expand_projector(right_.places, right_.values, q);
  at::mm_out(left_.product, gradient_, q);
  at::mm_out(right_.product, gradient_.t(), p);
  at::mm_out(s_, p.t(), left_.product);
  at::mm_out(left_square_, p.t(), p);
  at::mm_out(right_square_, q.t(), q);
  at::mm_out(a_, left_square_, s_);
  at::mm_out(t_, a_, right_square_);
  const auto inner = [&](const at::Tensor& x) { return at::sum(at::mul_out(b_, s_, x), at::kFloat); };
  return inner(t_).sub_(inner(s_), 2).add_(square_norm_).div_(square_norm_);
}

// Half of the gradient of |P P^T G Q Q^T - G|^2 by P: P (S Q^T Q S^T) + G Q (T - 2 S)^T, T = P^T P S Q^T Q; by Q
// likewise. From the products of square_bias().
void SubspaceFit::find_gradients() {
  at::mm_out(b_, s_.t(), a_);
  at::mm_out(right_.gradient, right_.dense, b_);
  at::mm_out(a_, s_, right_square_);
  at::mm_out(b_, a_, s_.t());
  at::mm_out(left_.gradient, left_.dense, b_);
  t_.sub_(s_, 2);
  left_.gradient.addmm_(left_.product, t_.t());
  right_.gradient.addmm_(right_.product, t_);
}

// AdamW with LibTorch's defaults, whose decay is the regulariser, and a rate that falls along a cosine, as in the
// artifact. Epsilon is small, since gradients of large matrices' values are.
void SubspaceFit::step(Side& side, int index) const {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kDecay = 0.01, kEpsilon = 1e-15;
  const double rate = side.rate * 0.5 * (1 + std::cos(std::numbers::pi * index / kFitSteps));
  const at::Tensor gradient = side.gradient.gather(1, side.places).to(at::kFloat).div_(square_norm_);
  side.m.mul_(kBeta1).add_(gradient, 1 - kBeta1);
  side.v.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  const at::Tensor root = side.v.sqrt().div_(std::sqrt(1 - std::pow(kBeta2, index + 1))).add_(kEpsilon);
  side.values.mul_(1 - rate * kDecay).addcdiv_(side.m, root, -rate / (1 - std::pow(kBeta1, index + 1)));
}

// The new values where accepted, with the moments in their subspace; else the old ones.
void SubspaceFit::choose(const at::Tensor& accepted, const at::Tensor& m, const at::Tensor& v) {
  for (Side* side : {&left_, &right_}) {
    side->values.copy_(at::where(accepted, side->values, side->old_values));
    expand_projector(side->places, side->values, side->dense);
    expand_projector(side->places, side->old_values, side->product);
  }
  const at::Tensor left = at::mm_out(a_, left_.dense.t(), left_.product).to(at::kFloat);
  const at::Tensor right = at::mm_out(b_, right_.product.t(), right_.dense).to(at::kFloat);
  m.copy_(at::where(accepted, at::mm(at::mm(left, m), right), m));
  v.copy_(at::where(accepted, at::mm(at::mm(left.square(), v), right.square()), v));
}

void SubspaceFit::run(double threshold, const at::Tensor& m, const at::Tensor& v, bool may_wait) {
  const at::Tensor before = square_bias();
  const at::Tensor exceeds = before.gt(threshold * threshold);
  if (may_wait && !exceeds.item<bool>()) return;
  for (int i = 0; i < kFitSteps; ++i) {
    if (i > 0) square_bias();
    find_gradients();
    step(left_, i);
    step(right_, i);
  }
  choose(square_bias().lt(before).logical_and_(exceeds), m, v);
}

}  // namespace tandem
