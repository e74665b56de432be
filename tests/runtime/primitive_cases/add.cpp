#include <ATen/ops/add.h>
#include <ATen/ops/relu.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

std::vector<PrimitiveCase> cases() {
  PrimitiveCase sum;
  sum.name = "add";
  sum.inputs = {{{3, 19}}, {{3, 19}}};
  sum.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.add("sum", m.activation("first", in[0], "relu"), m.activation("second", in[1], "relu"))};
  };
  sum.reference = [](const Tensors& in, const Tensors&) { return Tensors{at::relu(in[0]) + at::relu(in[1])}; };

  PrimitiveCase residual = sum;
  residual.name = "add_residual";
  residual.inputs = {{{3, 19}}};
  residual.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.add("sum", in[0], m.activation("branch", in[0], "relu"))};
  };
  residual.reference = [](const Tensors& in, const Tensors&) { return Tensors{in[0] + at::relu(in[0])}; };
  return {sum, residual};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
