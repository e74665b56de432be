#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kBatch = 3, kSequence = 7, kRows = 19, kColumns = 11;

std::vector<PrimitiveCase> cases() {
  PrimitiveCase c;
  c.name = "embedding_and_positions";
  c.inputs = {{{kBatch, kSequence}, /*below=*/kRows}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.positions("positions", m.embedding("table", in[0], kRows, kColumns), kSequence)};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    return Tensors{(at::embedding(w[0], in[0]) + w[1]).flatten(0, 1)};
  };

  // By a weight that is an input, as one that modules share.
  PrimitiveCase shared;
  shared.name = "linear_by_an_input";
  shared.inputs = {{{7, kColumns}}, {{kRows, kColumns}}};
  shared.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.linear_by("linear", in[0], in[1], false)}; };
  shared.reference = [](const Tensors& in, const Tensors&) { return Tensors{at::linear(in[0], in[1])}; };
  shared.forward_flops = 2 * 7 * kRows * kColumns, shared.backward_flops = 2 * shared.forward_flops;
  return {c, shared};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
