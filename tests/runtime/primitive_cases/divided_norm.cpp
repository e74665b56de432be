// Norms of rows of which three ranks have some columns each: what one rank tells, and what the told numbers come to.
#include <ATen/ops/cat.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRanks = 3, kRows = 9, kColumns = 35;

PrimitiveCase statistics(std::int64_t part) {
  PrimitiveCase c;
  c.name = "norm_statistics_" + std::to_string(part);
  c.inputs = {{{kRows, kColumns}}};
  c.goes_backward = false;
  c.build = [part](ModuleBuilder& m, const Locals& in) {
    return Locals{
        m.call("statistics", "norm_statistics", in, {{"ranks", kRanks}, {"part", part}, {"centred", std::int64_t{1}}})};
  };
  c.reference = [part](const Tensors& in, const Tensors&) {
    const at::Tensor x = in[0].to(at::kFloat), squares = at::var(x, {1}, /*unbiased=*/false) * kColumns;
    std::vector<at::Tensor> all(kRanks, at::zeros({2, kRows}));
    all[static_cast<std::size_t>(part)] = at::stack({x.mean(1), squares});
    return Tensors{at::cat(all)};
  };
  c.fp32_error = c.bf16_error = 1e-6;  // LibTorch's variance adds up in another order
  return c;
}

PrimitiveCase squares() {
  PrimitiveCase c = statistics(0);
  c.name = "norm_statistics_of_squares";
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("statistics", "norm_statistics", in, {{"ranks", kRanks}})};
  };
  c.reference = [](const Tensors& in, const Tensors&) {
    return Tensors{in[0].to(at::kFloat).pow(2).mean(1).mul(kColumns).unsqueeze(0)};
  };
  return c;
}

// Inputs: the columns of three ranks. Each tells of its own, which is added up; then the second one norms its columns:
// LibTorch's norm of all columns, of which it has the second part.
PrimitiveCase norm(bool centred, std::int64_t offset) {
  PrimitiveCase c;
  c.name = std::string("divided_") + (centred ? "layer_norm" : offset != 0 ? "rms_norm_offset" : "rms_norm");
  c.inputs = {{{kRows, kColumns}}, {{kRows, kColumns}}, {{kRows, kColumns}}};
  c.goes_backward = false;
  c.build = [=](ModuleBuilder& m, const Locals& in) {
    Attributes how = {{"ranks", kRanks}, {"centred", std::int64_t{centred}}, {"epsilon", 1e-5}, {"offset", offset}};
    LocalId told = kNone;
    for (std::int64_t part = 0; part < kRanks; ++part) {
      how.set("part", part);
      const std::string name = "told" + std::to_string(part);
      const LocalId own = m.call(name, "norm_statistics", {in[static_cast<std::size_t>(part)]}, how);
      told = told == kNone ? own : m.add("sum" + std::to_string(part), told, own);
    }
    return Locals{m.call("norm", "divided_norm", {in[1], told}, how)};
  };
  c.reference = [=](const Tensors& in, const Tensors& w) {
    const at::Tensor x = at::cat({in[0], in[1], in[2]}, 1).to(at::kFloat);
    const at::Tensor norm =
        centred ? at::layer_norm(x, {3 * kColumns}, {}, {}, 1e-5) : at::rms_norm(x, {3 * kColumns}, {}, 1e-5);
    at::Tensor own = norm.narrow(1, kColumns, kColumns) * (w[0].to(at::kFloat) + static_cast<double>(offset));
    if (centred) own = own + w[1].to(at::kFloat);
    return Tensors{own.to(in[1].scalar_type())};
  };
  c.fp32_error = 1e-6;  // sums of three parts
  c.bf16_error = 4e-3;  // of which a number in bf16 may fall to its other neighbour
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {statistics(0), statistics(1), statistics(2), squares(), norm(true, 0), norm(false, 0), norm(false, 1)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
