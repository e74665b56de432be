// On a GPU LibTorch has fused kernels of it. On the CPU it has none, forward or backward: torch's rms_norm is composed
// of the kernels below, and so is its backward by autograd, in this order.
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/sum.h>

#include <tuple>

#include "runtime/primitives/common/number.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

bool moves_weight(const Call& call) { return call.how.integer("offset", 0) != 0; }
bool fused(const Arguments& a) { return a.in[0].is_cuda() && !moves_weight(a.call); }

// What a row is multiplied by.
Tensor factor(const Call& call, const Tensor& weight) {
  const Tensor wide = weight.to(at::kFloat);
  return moves_weight(call) ? at::add(wide, 1) : wide;
}

void forward(Arguments& a) {
  const Tensor& x = a.in[0];
  const double epsilon = a.call.how.number("epsilon");
  if (fused(a)) {
    const auto [out, rstd] = at::_fused_rms_norm(x, {x.size(1)}, a.weights[0], epsilon);
    a.out[0].copy_(out);
    if (a.saved[0].defined()) a.saved[0].copy_(rstd.view_as(a.saved[0]));
    return;
  }
  const Tensor wide = x.to(at::kFloat);
  Tensor rstd = a.saved[0].defined() ? a.saved[0].view({x.size(0), 1}) : at::empty({x.size(0), 1}, wide.options());
  Tensor out = x.scalar_type() == at::kFloat ? a.out[0] : at::empty(x.sizes(), wide.options());
  at::pow_out(out, wide, 2);
  at::mean_out(rstd, out, 1, /*keepdim=*/true);
  rstd.add_(epsilon).rsqrt_();
  at::mul_out(out, wide, rstd);
  out.mul_(factor(a.call, a.weights[0]));
  if (x.scalar_type() != at::kFloat) a.out[0].copy_(out);
}

// From the gradient of x rstd to that of x by way of its mean square, in the same place.
void through_mean(Tensor scaled, const Tensor& x, const Tensor& rstd) {
  scaled.mul_(x);
  const Tensor of_mean = at::sum(scaled, 1, /*keepdim=*/true).mul_(-0.5).mul_(at::pow(rstd, 3)).div_(x.size(1));
  at::mul_out(scaled, x, number(2));
  scaled.mul_(of_mean);
}

void backward(Arguments& a) {
  const Tensor& rows = a.in[0];
  const bool wants_input = a.input_gradients[0].wanted(), wants_weight = a.wanted.weights != 0;
  if (fused(a)) {
    const auto [grad_input, grad_weight] =
        at::_fused_rms_norm_backward(a.output_gradient, rows, {rows.size(1)}, a.saved[0].view({rows.size(0), 1}),
                                     a.weights[0], {wants_input, wants_weight});
    if (wants_weight) a.weight_gradients[0].take(grad_weight);
    if (wants_input) a.input_gradients[0].take(grad_input);
    return;
  }
  const Tensor x = rows.to(at::kFloat), grad = a.output_gradient.to(at::kFloat);
  const Tensor rstd = a.saved[0].view({rows.size(0), 1});
  Tensor product = at::mul(x, rstd);
  if (wants_weight) a.weight_gradients[0].take(at::sum(product.mul_(grad), 0));
  if (!wants_input) return;
  at::mul_out(product, grad, factor(a.call, a.weights[0]));
  // As a factor, and by its mean square: two gradients, which autograd adds one after the other to what is there. In 16
  // bits, what was widened sums them first.
  const GradientOut& gradient = a.input_gradients[0];
  if (rows.scalar_type() == at::kFloat) {
    gradient.make([&](Tensor out) { at::mul_out(out, product, rstd); });
    through_mean(product, x, rstd);
    Tensor target = gradient.target();
    target.add_(product);
  } else {
    Tensor sum = grad;
    at::mul_out(sum, product, rstd);
    through_mean(product, x, rstd);
    gradient.make([&](const Tensor& out) { out.copy_(sum.add_(product)); });
  }
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const Tensor& x = c.in[0];
  const Tensor by = moves_weight(c.call) ? factor(c.call, c.weights[0]) : c.weights[0];
  return {at::rms_norm(x, {x.size(1)}, by, c.call.how.number("epsilon"))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(rms_norm, forward, backward, reference)
