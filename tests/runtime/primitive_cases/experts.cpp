// Mixtures of experts: a router, experts' buffers, and what keeps experts evenly used.
#include <ATen/ops/argmax.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

struct Experts {
  std::string name;
  std::int64_t tokens, hidden, experts, choices, capacity, normalise;
  std::int64_t slots() const { return experts * capacity; }
};

// One by one: first choices of all tokens, then second ones.
at::Tensor places_of(const at::Tensor& chosen, const Experts& e) {
  const at::Tensor places = at::empty_like(chosen);
  std::vector<std::int64_t> filled(static_cast<std::size_t>(e.experts));
  for (std::int64_t choice = 0; choice < e.choices; ++choice)
    for (std::int64_t token = 0; token < e.tokens; ++token) {
      const auto expert = chosen[token][choice].item<std::int64_t>();
      std::int64_t& used = filled[static_cast<std::size_t>(expert)];
      places[token][choice] = used < e.capacity ? expert * e.capacity + used++ : -1;
    }
  return places;
}

// A row of zeros behind the last place stands for none.
at::Tensor dispatched(const at::Tensor& x, const at::Tensor& places, const Experts& e) {
  const at::Tensor rows = x.unsqueeze(1).expand({e.tokens, e.choices, x.size(1)}).reshape({-1, x.size(1)});
  const at::Tensor slots = places.view(-1).masked_fill(places.view(-1).lt(0), e.slots());
  return at::zeros({e.slots() + 1, x.size(1)}, x.options()).index_copy(0, slots, rows).slice(0, 0, e.slots());
}

at::Tensor combined(const at::Tensor& buffers, const at::Tensor& places, const at::Tensor& weights) {
  const at::Tensor slots = places.view(-1);
  const at::Tensor rows = buffers.index_select(0, slots.clamp_min(0)).masked_fill(slots.lt(0).unsqueeze(1), 0);
  return (rows.view({places.size(0), places.size(1), -1}) * weights.unsqueeze(2)).sum(1);
}

at::Tensor balance(const at::Tensor& logits, double weight) {
  const std::int64_t experts = logits.size(1);
  const at::Tensor p = at::softmax(logits.to(at::kFloat), 1);
  const at::Tensor shares = at::one_hot(at::argmax(p, 1), experts).to(at::kFloat).mean(0);
  return (shares * p.mean(0)).sum() * (weight * static_cast<double>(experts));
}

at::Tensor experts_of(const at::Tensor& buffers, const at::Tensor& weight) {
  return at::bmm(buffers.view({weight.size(0), -1, buffers.size(1)}), weight.transpose(1, 2))
      .view({buffers.size(0), -1});
}

Tensors layer(const at::Tensor& x, const Tensors& w, const Experts& e) {
  const at::Tensor logits = at::linear(x, w[0]);
  const at::Tensor p = at::softmax(logits.to(at::kFloat), 1);
  const auto [values, order] = at::sort(p, /*stable=*/true, 1, /*descending=*/true);
  at::Tensor weights = values.slice(1, 0, e.choices);
  if (e.normalise != 0) weights = weights / weights.sum(1, /*keepdim=*/true);
  const at::Tensor places = places_of(order.slice(1, 0, e.choices).contiguous(), e);
  const at::Tensor up = at::relu(experts_of(dispatched(x, places, e), w[1]));
  return {combined(experts_of(up, w[2]), places, weights.to(x.scalar_type())), balance(logits, 0.01)};
}

PrimitiveCase experts(const Experts& e) {
  PrimitiveCase c;
  c.name = e.name;
  c.inputs = {{{e.tokens, e.hidden}}};
  c.build = [e](ModuleBuilder& m, const Locals& in) {
    const LocalId logits = m.call("router", "linear", in, {{"outputs", e.experts}, {"bias", std::int64_t{0}}});
    const LocalId weights = m.call("route", "route", {logits},
                                   {{"choices", e.choices}, {"capacity", e.capacity}, {"normalise", e.normalise}});
    const LocalId places = weights + 1;
    const LocalId buffers = m.call("buffers", "dispatch", {in[0], places}, {{"slots", e.slots()}});
    const LocalId up = m.call("up", "expert_linear", {buffers}, {{"experts", e.experts}, {"outputs", 2 * e.hidden}});
    const LocalId down = m.call("down", "expert_linear", {m.activation("relu", up, "relu")},
                                {{"experts", e.experts}, {"outputs", e.hidden}});
    return Locals{m.call("out", "combine", {down, places, weights}, {}),
                  m.call("balance", "load_balance", {logits}, {{"weight", 0.01}})};
  };
  c.reference = [e](const Tensors& in, const Tensors& w) { return layer(in[0], w, e); };
  const std::int64_t router = 2 * e.tokens * e.hidden * e.experts, product = 2 * e.slots() * e.hidden * 2 * e.hidden;
  c.forward_flops = router + 2 * product, c.backward_flops = 2 * c.forward_flops;
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {experts({"experts_switch", 37, 16, 4, 1, 12, 0}), experts({"experts_two", 37, 16, 4, 2, 30, 1}),
          experts({"experts_full", 96, 24, 8, 2, 9, 1}), experts({"experts_few", 5, 8, 3, 3, 2, 0})};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
