#include <ATen/ops/linear.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

// Parts of unequal size, which overlap, and a rest that nobody reads.
std::vector<PrimitiveCase> cases() {
  PrimitiveCase c;
  c.name = "columns";
  c.inputs = {{{5, 17}}};
  const auto part = [](ModuleBuilder& m, LocalId x, const std::string& name, std::int64_t first, std::int64_t count) {
    return m.call(name, "columns", {x}, {{"first", first}, {"count", count}});
  };
  c.build = [part](ModuleBuilder& m, const Locals& in) {
    return Locals{m.add("sum", part(m, in[0], "first", 0, 7), part(m, in[0], "second", 5, 7))};
  };
  c.reference = [](const Tensors& in, const Tensors&) {
    return Tensors{in[0].narrow(1, 0, 7) + in[0].narrow(1, 5, 7)};
  };

  // As of a projection of queries, keys and values.
  PrimitiveCase inner = c;
  inner.name = "columns_of_a_projection";
  inner.build = [part](ModuleBuilder& m, const Locals& in) {
    const LocalId x = m.linear("projection", in[0], 12);
    const LocalId product = m.call("product", "multiply", {part(m, x, "k", 8, 2), part(m, x, "v", 10, 2)}, {});
    return Locals{m.add("sum", m.linear("wide", part(m, x, "q", 0, 8), 2), product)};
  };
  inner.reference = [](const Tensors& in, const Tensors& w) {
    const auto parts = at::linear(in[0], w[0], w[1]).split_with_sizes({8, 2, 2}, 1);
    return Tensors{at::linear(parts[0], w[2], w[3]) + parts[1] * parts[2]};
  };
  return {c, inner};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
