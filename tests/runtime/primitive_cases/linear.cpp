#include <ATen/ops/linear.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRows = 7, kInputs = 13, kOutputs = 11, kProduct = 2 * kRows * kInputs * kOutputs;

std::vector<PrimitiveCase> cases() {
  PrimitiveCase biased;
  biased.name = "linear";
  biased.inputs = {{{kRows, kInputs}}};
  biased.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.linear("linear", in[0], kOutputs)}; };
  biased.reference = [](const Tensors& in, const Tensors& w) { return Tensors{at::linear(in[0], w[0], w[1])}; };
  biased.forward_flops = kProduct, biased.backward_flops = 2 * kProduct;

  PrimitiveCase bare = biased;
  bare.name = "linear_without_bias";
  bare.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("linear", "linear", {in[0]}, {{"outputs", kOutputs}, {"bias", std::int64_t{0}}})};
  };
  bare.reference = [](const Tensors& in, const Tensors& w) { return Tensors{at::linear(in[0], w[0])}; };

  // Its input's gradient is the sum of two: the later reader's is first.
  PrimitiveCase twice = biased;
  twice.name = "linear_of_one_value_twice";
  twice.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.add("sum", m.linear("first", in[0], kOutputs), m.linear("second", in[0], kOutputs))};
  };
  twice.reference = [](const Tensors& in, const Tensors& w) {
    return Tensors{at::linear(in[0], w[0], w[1]) + at::linear(in[0], w[2], w[3])};
  };
  twice.forward_flops = 2 * kProduct, twice.backward_flops = 4 * kProduct;
  return {biased, bare, twice};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
