#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/primitives/common/softmax.hpp"

namespace tandem {
namespace {

// The factor before the sum.
double factor(const Call& call) { return call.how.number("weight") * static_cast<double>(call.shapes.in[0].columns()); }

// 1 for the likeliest expert of each row, in fp32.
at::Tensor falls_of(const at::Tensor& probabilities) {
  const at::Tensor likeliest = at::argmax(probabilities, 1, /*keepdim=*/true);
  return likeliest.eq(at::arange(probabilities.size(1), likeliest.options())).to(at::kFloat);
}

void forward(Arguments& a) {
  at::Tensor probabilities = saved_or_apart(a, 0), shares = saved_or_apart(a, 1);
  at::_softmax_out(probabilities, a.in[0].to(at::kFloat), 1, /*half_to_float=*/false);
  at::mean_out(shares, falls_of(probabilities), 0);
  a.out[0].copy_(at::mul(shares, probabilities.mean(0)).sum().mul_(factor(a.call)));
}

void backward(Arguments& a) {
  const at::Tensor &probabilities = a.saved[0], &shares = a.saved[1];
  const at::Tensor of_mean = at::mul(loss_gradient(a).mul_(factor(a.call)), shares);
  const at::Tensor of_each = of_mean.expand_as(probabilities).div(probabilities.size(0));
  softmax_backward(a.input_gradients[0], of_each, probabilities);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor probabilities = at::softmax(c.in[0].to(at::kFloat), 1);
  return {(falls_of(probabilities).mean(0) * probabilities.mean(0)).sum() * factor(c.call)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(load_balance, forward, backward, reference)
