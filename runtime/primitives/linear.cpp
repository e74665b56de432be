#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  if (a.weights.size() > 1)
    at::addmm_out(a.out[0], a.weights[1], a.in[0], a.weights[0].t());
  else
    at::mm_out(a.out[0], a.in[0], a.weights[0].t());
}

void backward(Arguments& a) {
  const at::Tensor& grad = a.output_gradient;
  if (a.input_gradients[0].wanted())
    a.input_gradients[0].make([&](at::Tensor out) { at::mm_out(out, grad, a.weights[0]); });
  if (a.wanted.weights == 0) return;
  // What is added is a sum of its own.
  const GradientOut& weight = a.weight_gradients[0];
  if (weight.adds()) {
    weight.take(at::mm(grad.t(), a.in[0]));
  } else {
    at::Tensor out = weight.target();
    at::mm_out(out, grad.t(), a.in[0]);
  }
  if (a.weight_gradients.size() < 2) return;
  const GradientOut& bias = a.weight_gradients[1];
  if (bias.adds()) {
    bias.take(at::sum(grad, 0));
  } else {
    at::Tensor out = bias.target();
    at::sum_out(out, grad, 0);
  }
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(linear, forward, backward)
