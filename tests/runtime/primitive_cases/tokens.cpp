// Images as tokens and back, class tokens, and what is taken of sequences.
#include <ATen/ops/cat.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

using Reference = std::function<at::Tensor(const Tensors& in, const Tensors& weights)>;

PrimitiveCase one(const std::string& name, const std::string& primitive, std::vector<std::int64_t> shape,
                  const Attributes& how, const Reference& reference) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = {{std::move(shape)}};
  c.build = [primitive, how](ModuleBuilder& m, const Locals& in) { return Locals{m.call("call", primitive, in, how)}; };
  c.reference = [reference](const Tensors& in, const Tensors& weights) { return Tensors{reference(in, weights)}; };
  c.forward_flops = c.backward_flops = 0;
  return c;
}

constexpr std::int64_t kBatch = 3, kSequence = 7, kHidden = 20;
at::Tensor sequences(const at::Tensor& tokens) { return tokens.view({kBatch, kSequence, kHidden}); }

// Two readers of one value: gradients are written, then added.
PrimitiveCase twice() {
  PrimitiveCase c;
  c.name = "tokens_read_twice";
  c.inputs = {{{kBatch * kSequence, kHidden}}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    const LocalId x = m.activation("x", in[0], "relu");
    const LocalId first = m.call("first", "select_token", {x}, {{"sequence", kSequence}, {"index", std::int64_t{0}}});
    const LocalId mean = m.call("mean", "mean_tokens", {x}, {{"sequence", kSequence}});
    const LocalId rows = m.call("rows", "rows", {x}, {{"count", kBatch}});
    const LocalId prepended = m.call("prepended", "prepend_token", {x}, {{"sequence", kSequence}});
    return Locals{m.call("all", "concat", {first, mean, rows, prepended}, {{"axis", std::int64_t{0}}})};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    const at::Tensor x = at::relu(in[0]);
    const at::Tensor first = sequences(x).select(1, 0), mean = sequences(x).mean(1), rows = x.slice(0, 0, kBatch);
    const at::Tensor prepended = at::cat({w[0].expand({kBatch, 1, kHidden}), sequences(x)}, 1).view({-1, kHidden});
    return Tensors{at::cat({first, mean, rows, prepended})};
  };
  return c;
}

std::vector<PrimitiveCase> cases() {
  const std::int64_t tokens = kBatch * kSequence;
  return {
      one("tokens_of", "tokens_of", {2, 5, 4, 6}, {},
          [](const Tensors& in, const Tensors&) {
            return in[0].permute({0, 2, 3, 1}).reshape({48, 5});
          }),
      one("tokens_of_sequence", "tokens_of", {2, 5, 9}, {},
          [](const Tensors& in, const Tensors&) {
            return in[0].transpose(1, 2).reshape({18, 5});
          }),
      one("image_of", "image_of", {48, 5}, {{"height", std::int64_t{4}}, {"width", std::int64_t{6}}},
          [](const Tensors& in, const Tensors&) {
            return in[0].view({2, 4, 6, 5}).permute({0, 3, 1, 2});
          }),
      one("image_of_sequence", "image_of", {18, 5}, {{"width", std::int64_t{9}}},
          [](const Tensors& in, const Tensors&) {
            return in[0].view({2, 9, 5}).transpose(1, 2);
          }),
      one("prepend_token", "prepend_token", {tokens, kHidden}, {{"sequence", kSequence}},
          [](const Tensors& in, const Tensors& w) {
            return at::cat({w[0].expand({kBatch, 1, kHidden}), sequences(in[0])}, 1).view({-1, kHidden});
          }),
      one("select_token", "select_token", {tokens, kHidden}, {{"sequence", kSequence}, {"index", std::int64_t{2}}},
          [](const Tensors& in, const Tensors&) { return sequences(in[0]).select(1, 2); }),
      one("mean_tokens", "mean_tokens", {tokens, kHidden}, {{"sequence", kSequence}},
          [](const Tensors& in, const Tensors&) { return sequences(in[0]).mean(1); }),
      one("prepend_tokens", "prepend_token", {tokens, kHidden}, {{"sequence", kSequence}, {"count", std::int64_t{4}}},
          [](const Tensors& in, const Tensors& w) {
            return at::cat({w[0].expand({kBatch, 4, kHidden}), sequences(in[0])}, 1).view({-1, kHidden});
          }),
      one("select_tokens", "select_token", {tokens, kHidden},
          {{"sequence", kSequence}, {"index", std::int64_t{2}}, {"count", std::int64_t{4}}},
          [](const Tensors& in, const Tensors&) {
            return sequences(in[0]).slice(1, 2, 6).reshape({-1, kHidden});
          }),
      one("mean_tokens_apart", "mean_tokens", {4 * tokens, kHidden},
          {{"sequence", kSequence}, {"apart", std::int64_t{4}}},
          [](const Tensors& in, const Tensors&) {
            return in[0].view({kBatch, kSequence, 4, kHidden}).mean(1).view({-1, kHidden});
          }),
      one("later_rows", "rows", {tokens, kHidden}, {{"first", std::int64_t{2}}, {"count", std::int64_t{3}}},
          [](const Tensors& in, const Tensors&) { return in[0].slice(0, 2, 5); }),
      one("rows_of_a_rank", "rows", {tokens, kHidden}, {{"count", std::int64_t{2}}, {"part", std::int64_t{1}}},
          [](const Tensors& in, const Tensors&) { return in[0].slice(0, 2, 4); }),
      one("rows", "rows", {tokens, kHidden}, {{"count", std::int64_t{5}}},
          [](const Tensors& in, const Tensors&) { return in[0].slice(0, 0, 5); }),
      twice()};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
