#include <ATen/ops/_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/primitives/common/softmax.hpp"

namespace tandem {
namespace {

// The factor before the sum.
double factor(const Arguments& a) {
  return a.call.how.number("weight") * static_cast<double>(a.call.shapes.in[0].columns());
}

void forward(Arguments& a) {
  at::Tensor probabilities = saved_or_apart(a, 0), shares = saved_or_apart(a, 1);
  at::_softmax_out(probabilities, a.in[0].to(at::kFloat), 1, /*half_to_float=*/false);
  {
    const at::Tensor likeliest = at::argmax(probabilities, 1, /*keepdim=*/true);
    const at::Tensor falls = likeliest.eq(at::arange(probabilities.size(1), likeliest.options()));
    at::mean_out(shares, falls.to(at::kFloat), 0);
  }
  a.out[0].copy_(at::mul(shares, probabilities.mean(0)).sum().mul_(factor(a)));
}

void backward(Arguments& a) {
  const at::Tensor &probabilities = a.saved[0], &shares = a.saved[1];
  const at::Tensor of_mean = at::mul(loss_gradient(a).mul_(factor(a)), shares);
  const at::Tensor of_each = of_mean.expand_as(probabilities).div(probabilities.size(0));
  softmax_backward(a.input_gradients[0], of_each, probabilities);
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(load_balance, forward, backward)
