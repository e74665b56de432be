#include <ATen/ops/layer_norm.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

std::vector<PrimitiveCase> cases() {
  PrimitiveCase c;
  c.name = "layer_norm";
  c.inputs = {{{9, 35}}};
  c.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.layer_norm("norm", in[0], 1e-5)}; };
  c.reference = [](const Tensors& in, const Tensors& w) {
    return Tensors{at::layer_norm(in[0], {in[0].size(1)}, w[0], w[1], 1e-5)};
  };
  return {c};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
