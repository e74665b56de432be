#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kBatch = 2, kSequence = 11, kHeads = 3, kSize = 10;

// As transformers' Llama (halves) and GPT-J (interleaved) write it.
at::Tensor rotated(const at::Tensor& rows, std::int64_t dims, double theta, bool interleaved) {
  const at::Tensor x = rows.view({kBatch, kSequence, kHeads, kSize}).transpose(1, 2);
  const at::Tensor exponents = at::arange(0, dims, 2, at::kLong).to(at::kFloat) / dims;
  const at::Tensor angles = at::outer(at::arange(kSequence, at::kLong).to(at::kFloat), 1.0 / at::pow(theta, exponents));
  const auto twice = [&](const at::Tensor& t) {
    return (interleaved ? t.repeat_interleave(2, 1) : at::cat({t, t}, 1)).to(rows.scalar_type());
  };
  const at::Tensor turned = x.narrow(3, 0, dims);
  const at::Tensor other = interleaved
                               ? at::stack({-turned.slice(3, 1, dims, 2), turned.slice(3, 0, dims, 2)}, -1).flatten(-2)
                               : at::cat({-turned.slice(3, dims / 2, dims), turned.slice(3, 0, dims / 2)}, -1);
  const at::Tensor sum = turned * twice(angles.cos()) + other * twice(angles.sin());
  return at::cat({sum, x.narrow(3, dims, kSize - dims)}, -1).transpose(1, 2).reshape(rows.sizes());
}

PrimitiveCase rotary(const std::string& name, std::int64_t dims, double theta, bool interleaved) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = {{{kBatch * kSequence, kHeads * kSize}}};
  Attributes how = {{"heads", kHeads},
                    {"sequence", kSequence},
                    {"theta", theta},
                    {"dims", dims},
                    {"interleaved", std::int64_t{interleaved}}};
  c.build = [how](ModuleBuilder& m, const Locals& in) { return Locals{m.call("rotary", "rotary", {in[0]}, how)}; };
  c.reference = [=](const Tensors& in, const Tensors&) { return Tensors{rotated(in[0], dims, theta, interleaved)}; };
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {rotary("rotary", kSize, 10000, false), rotary("rotary_partial", 6, 500000, false),
          rotary("rotary_interleaved", kSize, 10000, true), rotary("rotary_interleaved_partial", 4, 10000, true)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
