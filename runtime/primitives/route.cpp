#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/primitives/common/softmax.hpp"

namespace tandem {
namespace {

// Place of each choice [tokens, choices] of an expert.
at::Tensor places_of(const at::Tensor& chosen, std::int64_t experts, std::int64_t capacity) {
  const at::Tensor choices = chosen.t().reshape({-1, 1});  // all first ones, then all second ones
  at::Tensor place;
  {
    const at::Tensor falls = choices.eq(at::arange(experts, choices.options()));
    place = at::gather(at::cumsum(falls, 0), 1, choices).sub_(1);
  }
  const at::Tensor full = place.ge(capacity);
  place.add_(choices, capacity).masked_fill_(full, -1);
  return place.view({chosen.size(1), chosen.size(0)}).t();
}

void forward(Arguments& a) {
  const Attributes& how = a.call.how;
  const std::int64_t choices = how.integer("choices"), experts = a.in[0].size(1);
  at::Tensor probabilities = saved_or_apart(a, 0);
  const at::Tensor chosen = saved_or_apart(a, 1);
  at::_softmax_out(probabilities, a.in[0].to(at::kFloat), 1, /*half_to_float=*/false);
  {
    const auto [values, order] = at::sort(probabilities, /*stable=*/true, 1, /*descending=*/true);
    const at::Tensor likeliest = values.narrow(1, 0, choices);
    chosen.copy_(order.narrow(1, 0, choices));
    if (how.integer("normalise", 0) != 0)
      a.out[0].copy_(at::div(likeliest, likeliest.sum(1, /*keepdim=*/true)));
    else
      a.out[0].copy_(likeliest);
  }
  a.out[1].copy_(places_of(chosen, experts, how.integer("capacity")));
}

void backward(Arguments& a) {
  const at::Tensor &probabilities = a.saved[0], &chosen = a.saved[1];
  at::Tensor grad = a.output_gradient.to(at::kFloat);
  if (a.call.how.integer("normalise", 0) != 0) {
    const at::Tensor likeliest = at::gather(probabilities, 1, chosen), sum = likeliest.sum(1, /*keepdim=*/true);
    const at::Tensor over = at::div(likeliest, sum).div_(sum);
    grad = at::div(grad, sum).add_(grad.neg().mul_(over).sum(1, /*keepdim=*/true));
  }
  const at::Tensor spread = at::zeros(probabilities.sizes(), probabilities.options()).scatter_(1, chosen, grad);
  softmax_backward(a.input_gradients[0], spread, probabilities);
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const Attributes& how = c.call.how;
  const at::Tensor probabilities = at::softmax(c.in[0].to(at::kFloat), 1);
  const auto [values, order] = at::sort(probabilities, /*stable=*/true, 1, /*descending=*/true);
  const std::int64_t choices = how.integer("choices");
  at::Tensor weights = values.narrow(1, 0, choices);
  if (how.integer("normalise", 0) != 0) weights = weights / weights.sum(1, /*keepdim=*/true);
  return {weights.to(c.in[0].scalar_type()),
          places_of(order.narrow(1, 0, choices), c.in[0].size(1), how.integer("capacity"))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(route, forward, backward, reference)
