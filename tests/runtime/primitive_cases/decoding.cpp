// What a network has that generates text: attention to a cache, positions that begin later, and a choice.
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <optional>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kHeads = 3, kSize = 8, kHidden = kHeads * kSize, kCapacity = 700;

// Attends to what was there and what is new, put together; leaves that in the cache.
at::Tensor attended(const at::Tensor& qkv, const at::Tensor& cache, std::int64_t position) {
  const std::int64_t tokens = qkv.size(0), keys = position + tokens;
  const std::vector<at::Tensor> parts = qkv.split(kHidden, 1);
  const auto heads = [](const at::Tensor& rows) {
    return rows.contiguous().view({1, rows.size(0), kHeads, kSize}).transpose(1, 2);
  };
  const at::Tensor key = at::cat({cache.select(0, 0).slice(0, 0, position), parts[1]});
  const at::Tensor value = at::cat({cache.select(0, 1).slice(0, 0, position), parts[2]});
  cache.select(0, 0).slice(0, 0, keys).copy_(key);
  cache.select(0, 1).slice(0, 0, keys).copy_(value);
  const at::Tensor seen = at::ones({tokens, keys}, at::kBool).tril(position);
  return at::scaled_dot_product_attention(heads(parts[0]), heads(key), heads(value), seen)
      .transpose(1, 2)
      .reshape({tokens, kHidden});
}

PrimitiveCase cached_attention(const std::string& name, std::int64_t tokens, std::int64_t position) {
  PrimitiveCase c;
  c.name = "cached_attention_" + name;
  c.inputs = {{{tokens, 3 * kHidden}}};
  c.carried = {{{2, kCapacity, kHidden}}};
  c.goes_backward = false;
  c.build = [position](ModuleBuilder& m, const Locals& in) {
    return Locals{m.cached_attention("attention", in[0], in[1], kHeads, position)};
  };
  c.reference = [position](const Tensors& in, const Tensors&) { return Tensors{attended(in[0], in[1], position)}; };
  c.fp32_error = 1e-6, c.bf16_error = 1e-2;  // a mask and a causal kernel sum in another order
  c.forward_flops = 4 * tokens * (position + tokens) * kHidden;
  return c;
}

constexpr std::int64_t kBatch = 2, kSequence = 5, kFirst = 3, kRows = 11;

// Of which one sequence begins earlier than the other, but none before the first row.
PrimitiveCase padded_positions() {
  PrimitiveCase c;
  c.name = "positions_behind_padding";
  c.inputs = {{{kBatch * kSequence, kHidden}}, {{kBatch}, kSequence}};
  c.goes_backward = false;
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("positions", "positions", in, {{"sequence", kSequence}, {"first", 1}, {"rows", kRows}})};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    at::Tensor out = in[0].view({kBatch, kSequence, kHidden}).clone();
    for (std::int64_t text = 0; text < kBatch; ++text)
      for (std::int64_t i = 0; i < kSequence; ++i) {
        const std::int64_t at = 1 + i - in[1].select(0, text).item<std::int64_t>();
        out.select(0, text).select(0, i).add_(w[0].select(0, std::max<std::int64_t>(at, 0)));
      }
    return Tensors{out.view({-1, kHidden})};
  };
  return c;
}

PrimitiveCase later_positions() {
  PrimitiveCase c;
  c.name = "positions_that_begin_later";
  c.inputs = {{{kBatch * kSequence, kHidden}}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.positions("positions", in[0], kSequence, kFirst, kRows)};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    return Tensors{
        (in[0].view({kBatch, kSequence, kHidden}) + w[0].slice(0, kFirst, kFirst + kSequence)).view({-1, kHidden})};
  };
  c.forward_flops = c.backward_flops = 0;
  return c;
}

PrimitiveCase likeliest(const std::string& name, CaseInput logits, std::int64_t padding) {
  PrimitiveCase c;
  c.name = "likeliest_" + name;
  c.inputs = {std::move(logits)};
  c.goes_backward = false;
  c.build = [padding](ModuleBuilder& m, const Locals& in) { return Locals{m.likeliest("next", in[0], padding)}; };
  c.reference = [padding](const Tensors& in, const Tensors&) {
    const at::Tensor numbers = in[0].flatten().slice(0, 0, in[0].numel() - padding).to(at::kDouble);
    const double* first = numbers.const_data_ptr<double>();
    return Tensors{at::full({1}, std::max_element(first, first + numbers.numel()) - first, at::kLong)};
  };
  c.forward_flops = 0;
  return c;
}

PrimitiveCase texts_that_grow() {
  PrimitiveCase c;
  c.name = "append_token";
  c.inputs = {{{3, 5}, /*below=*/90}, {{3}, /*below=*/90}};
  c.goes_backward = false;
  c.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.call("text", "append_token", in, {})}; };
  c.reference = [](const Tensors& in, const Tensors&) {
    at::Tensor grown = at::zeros({3, 6}, at::kLong);
    grown.narrow(1, 0, 5).copy_(in[0]);
    grown.select(1, 5).copy_(in[1]);
    return Tensors{grown};
  };
  c.forward_flops = 0;
  return c;
}

// What three ranks have of five rows, one after another.
PrimitiveCase columns_of_ranks() {
  constexpr std::int64_t kRanks = 3, kOwn = 5, kColumns = 7;
  PrimitiveCase c;
  c.name = "join_columns";
  c.inputs = {{{kRanks * kOwn, kColumns}}};
  c.goes_backward = false;
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("columns", "join_columns", {in[0]}, {{"ranks", std::int64_t{kRanks}}})};
  };
  c.reference = [](const Tensors& in, const Tensors&) { return Tensors{at::cat(in[0].split(kOwn, 0), 1)}; };
  c.forward_flops = 0;
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {cached_attention("prompt", 7, 0),
          cached_attention("long_prompt", 601, 0),
          cached_attention("first_token", 1, 0),
          cached_attention("token", 1, 20),
          cached_attention("last_token", 1, kCapacity - 1),
          cached_attention("some_tokens", 5, 11),
          cached_attention("many_tokens", 97, 603),
          later_positions(),
          padded_positions(),
          columns_of_ranks(),
          texts_that_grow(),
          likeliest("of_many", {{1, 3001}}, 0),
          likeliest("of_equals", {{1, 61}, /*below=*/4}, 0),
          likeliest("beside_padding", {{1, 61}, /*below=*/1 << 20}, 59)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
