#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>

#include "runtime/primitives/common/number.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;
constexpr double kQuick = 1.702;

Tensor quick_gate(const Tensor& x) { return at::mul(x, kQuick).sigmoid_(); }

const char* approximation(const std::string& kind) { return kind == "gelu_tanh" ? "tanh" : "none"; }

void forward(Arguments& a) {
  const std::string& kind = a.call.how.word("kind");
  Tensor out = a.out[0];
  const Tensor& x = a.in[0];
  if (kind == "relu") {
    at::clamp_min_out(out, x, 0);  // what relu is; its own out-variant makes another tensor
  } else if (kind == "silu") {
    at::silu_out(out, x);
  } else if (kind == "quick_gelu") {
    at::mul_out(out, x, quick_gate(x));
  } else if (kind == "tanh") {
    at::tanh_out(out, x);
  } else if (kind == "sigmoid") {
    at::sigmoid_out(out, x);
  } else {
    at::gelu_out(out, x, approximation(kind));
  }
}

// As a factor, and through the gate: two gradients, which autograd adds one after the other to what is there.
void quick_gelu_backward(const GradientOut& gradient, const Tensor& grad, const Tensor& x) {
  const Tensor gate = quick_gate(x);
  Tensor through = at::mul(grad, x);
  at::sigmoid_backward_out(through, through, gate);
  multiply_by(through, kQuick);
  gradient.make([&](Tensor out) { at::mul_out(out, grad, gate); });
  const Tensor& target = gradient.target();
  target.add_(through);
}

void backward(Arguments& a) {
  const std::string& kind = a.call.how.word("kind");
  const Tensor& grad = a.output_gradient;
  if (kind == "quick_gelu") return quick_gelu_backward(a.input_gradients[0], grad, a.in[0]);
  a.input_gradients[0].make([&](Tensor out) {
    if (kind == "relu")
      at::threshold_backward_out(out, grad, a.out[0], 0);
    else if (kind == "silu")
      at::silu_backward_out(out, grad, a.in[0]);
    else if (kind == "tanh")
      at::tanh_backward_out(out, grad, a.out[0]);
    else if (kind == "sigmoid")
      at::sigmoid_backward_out(out, grad, a.out[0]);
    else
      at::gelu_backward_out(out, grad, a.in[0], approximation(kind));
  });
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const std::string& kind = c.call.how.word("kind");
  const Tensor& x = c.in[0];
  if (kind == "relu") return {at::relu(x)};
  if (kind == "silu") return {at::silu(x)};
  if (kind == "quick_gelu") return {x * at::sigmoid(x * kQuick)};
  if (kind == "tanh") return {at::tanh(x)};
  if (kind == "sigmoid") return {at::sigmoid(x)};
  return {at::gelu(x, approximation(kind))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(activation, forward, backward, reference)
