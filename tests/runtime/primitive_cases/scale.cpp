#include <ATen/ops/mul.h>
#include <ATen/ops/tanh.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

PrimitiveCase of_numbers(const std::string& name, const Attributes& how,
                         std::function<at::Tensor(const at::Tensor&)> function) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = {{{7, 13}}};
  c.build = [name, how](ModuleBuilder& m, const Locals& in) { return Locals{m.call(name, name, {in[0]}, how)}; };
  c.reference = [function](const Tensors& in, const Tensors&) { return Tensors{function(in[0])}; };
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {of_numbers("scale", {{"factor", 0.37}}, [](const at::Tensor& x) { return x * 0.37; }),
          of_numbers("softcap", {{"cap", 1.7}}, [](const at::Tensor& x) { return at::tanh(x / 1.7) * 1.7; })};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
