#include <ATen/ops/rms_norm.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

PrimitiveCase rms_norm(const std::string& name, std::int64_t offset) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = {{{9, 35}}};
  c.build = [offset](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("norm", "rms_norm", {in[0]}, {{"epsilon", 1e-6}, {"offset", offset}})};
  };
  c.reference = [offset](const Tensors& in, const Tensors& w) {
    const at::Tensor factor = offset == 0 ? w[0] : w[0].to(at::kFloat) + 1;
    return Tensors{at::rms_norm(in[0], {in[0].size(1)}, factor, 1e-6)};
  };
  return c;
}

std::vector<PrimitiveCase> cases() {
  PrimitiveCase residual = rms_norm("rms_norm_before_a_residual", 0);
  residual.build = [](ModuleBuilder& m, const Locals& in) {
    const LocalId norm = m.call("norm", "rms_norm", {in[0]}, {{"epsilon", 1e-6}});
    return Locals{m.add("sum", in[0], m.call("second", "rms_norm", {norm}, {{"epsilon", 1e-6}}))};
  };
  residual.reference = [](const Tensors& in, const Tensors& w) {
    const at::Tensor norm = at::rms_norm(in[0], {in[0].size(1)}, w[0], 1e-6);
    return Tensors{in[0] + at::rms_norm(norm, {in[0].size(1)}, w[1], 1e-6)};
  };
  // Sums that several threads share.
  PrimitiveCase large = rms_norm("rms_norm_large", 0);
  large.inputs = {{{1100, 67}}};
  return {rms_norm("rms_norm", 0), rms_norm("rms_norm_offset", 1), residual, large};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
