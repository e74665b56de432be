#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

PrimitiveCase activation(const std::string& kind, at::Tensor (*function)(const at::Tensor&)) {
  PrimitiveCase c;
  c.name = "activation_" + kind;
  c.inputs = {{{5, 37}}};
  c.build = [kind](ModuleBuilder& m, const Locals& in) { return Locals{m.activation("activation", in[0], kind)}; };
  c.reference = [function](const Tensors& in, const Tensors&) { return Tensors{function(in[0])}; };
  c.forward_flops = c.backward_flops = 0;
  return c;
}

// In place, and its result's gradient in the place of a product's.
PrimitiveCase gated() {
  PrimitiveCase c;
  c.name = "activation_between_products";
  c.inputs = {{{5, 12}}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    const LocalId gate = m.activation("gate", m.linear("first", in[0], 9), "quick_gelu");
    const LocalId up = m.activation("up", m.linear("second", in[0], 9), "silu");
    return Locals{m.linear("down", m.call("product", "multiply", {gate, up}, {}), 7)};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    const at::Tensor first = at::linear(in[0], w[0], w[1]);
    const at::Tensor product = first * at::sigmoid(first * 1.702) * at::silu(at::linear(in[0], w[2], w[3]));
    return Tensors{at::linear(product, w[4], w[5])};
  };
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {activation("relu", [](const at::Tensor& x) { return at::relu(x); }),
          activation("gelu", [](const at::Tensor& x) { return at::gelu(x); }),
          activation("gelu_tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }),
          activation("silu", [](const at::Tensor& x) { return at::silu(x); }),
          activation("quick_gelu", [](const at::Tensor& x) { return x * at::sigmoid(x * 1.702); }),
          activation("tanh", [](const at::Tensor& x) { return at::tanh(x); }),
          activation("sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); }),
          gated()};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
