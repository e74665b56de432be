#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

std::vector<PrimitiveCase> cases() {
  PrimitiveCase product;
  product.name = "multiply";
  product.inputs = {{{3, 19}}, {{3, 19}}};
  product.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("product", "multiply", {in[0], in[1]}, {})};
  };
  product.reference = [](const Tensors& in, const Tensors&) { return Tensors{in[0] * in[1]}; };

  PrimitiveCase square = product;
  square.name = "multiply_by_itself";
  square.inputs = {{{3, 19}}};
  square.build = [](ModuleBuilder& m, const Locals& in) {
    const LocalId x = m.activation("activation", in[0], "silu");
    return Locals{m.call("product", "multiply", {x, x}, {})};
  };
  square.reference = [](const Tensors& in, const Tensors&) {
    const at::Tensor x = at::silu(in[0]);
    return Tensors{x * x};
  };
  return {product, square};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
