#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

at::Tensor mean_of(const at::Tensor& source, const at::Tensor& neighbours) {
  const at::Tensor places = neighbours.view(-1).clamp_min(0), none = neighbours.lt(0);
  const at::Tensor rows = source.index_select(0, places).view({neighbours.size(0), neighbours.size(1), -1});
  const at::Tensor count = none.logical_not().sum(1, /*keepdim=*/true).clamp_min(1).to(source.scalar_type());
  return rows.masked_fill(none.unsqueeze(2), 0).sum(1) / count;
}

// One layer of GraphSAGE: a target's own value, which is among the first, beside its neighbours' mean.
std::vector<PrimitiveCase> cases() {
  PrimitiveCase mean;
  mean.name = "aggregate";
  mean.inputs = {{{23, 12}}, {{9, 4}, /*below=*/23, /*sometimes=*/-1}};
  mean.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.call("mean", "aggregate", in, {})}; };
  mean.reference = [](const Tensors& in, const Tensors&) { return Tensors{mean_of(in[0], in[1])}; };
  mean.forward_flops = mean.backward_flops = 0;

  PrimitiveCase sage = mean;
  sage.name = "aggregate_sage";
  sage.inputs = {{{150, 33}}, {{64, 10}, /*below=*/150, /*sometimes=*/-1}};
  sage.build = [](ModuleBuilder& m, const Locals& in) {
    const LocalId x = m.activation("x", in[0], "relu");
    const LocalId own = m.call("own", "rows", {x}, {{"count", std::int64_t{64}}});
    const LocalId near = m.call("near", "aggregate", {x, in[1]}, {});
    return Locals{m.linear("out", m.call("both", "concat", {own, near}, {{"axis", std::int64_t{1}}}), 20)};
  };
  sage.reference = [](const Tensors& in, const Tensors& w) {
    const at::Tensor x = at::relu(in[0]);
    return Tensors{at::linear(at::cat({x.slice(0, 0, 64), mean_of(x, in[1])}, 1), w[0], w[1])};
  };
  sage.forward_flops = 2 * 64 * 66 * 20, sage.backward_flops = 2 * sage.forward_flops;

  // One place a target: those that are empty have no neighbour at all.
  PrimitiveCase alone = mean;
  alone.name = "aggregate_alone";
  alone.inputs = {{{7, 5}}, {{16, 1}, /*below=*/7, /*sometimes=*/-1}};
  return {mean, sage, alone};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
