// Attention to pages: a prompt, tokens that begin a page and that go on with one, heads that share keys, windows, and
// scores that something is added to, or that are capped.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kBatch = 3, kHeads = 6, kSize = 8, kRows = 5;

struct Sizes {
  std::int64_t key_heads = kHeads, tokens = 1;
  std::vector<std::int64_t> pages = {};  // rows of those that are full
  std::int64_t filled = 0;               // rows of the last page that others filled; 0: the call begins it
  std::int64_t window = 0;
  bool alibi = false;
  double softcap = 0;
  std::int64_t biases = 0;   // of so many keys, those that are there and later ones; 0: none
  std::int64_t padding = 0;  // the most that a text has; 0: none has any

  bool scored() const { return padding > 0 || alibi || softcap > 0 || biases > 0 || (window > 0 && tokens > window); }
  std::size_t first_page() const { return 3 + (biases > 0 ? 1 : 0) + (padding > 0 ? 1 : 0); }
  std::int64_t before() const {
    std::int64_t rows = filled;
    for (const std::int64_t page : pages) rows += page;
    return rows;
  }
  std::int64_t rows() const { return tokens > 1 ? tokens : kRows; }
};

// [batch, key_heads, keys, size] of [keys, batch, key_heads size], each head as often as queries read it.
at::Tensor heads_of(const at::Tensor& keys, std::int64_t key_heads) {
  return keys.reshape({keys.size(0), kBatch, key_heads, kSize})
      .permute({1, 2, 0, 3})
      .repeat_interleave(kHeads / key_heads, 1);
}

// Score by score. Heads that are no power of two have every other one of the next power's slopes for the rest.
at::Tensor by_scores(const Sizes& s, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Tensors& in) {
  constexpr double kSlopes[kHeads] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8};
  const std::int64_t keys = key.size(2), before = s.before(), first = before + s.tokens - keys;
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(kSize));
  if (s.softcap > 0) scores = at::tanh(scores / s.softcap) * s.softcap;
  if (s.biases > 0) scores = scores + in[3].narrow(2, 0, keys);
  for (std::int64_t i = 0; i < s.tokens; ++i)
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t distance = before + i - (first + j);
      const at::Tensor of_pair = scores.select(3, j).select(2, i);  // [batch, heads]
      if (distance < 0 || (s.window > 0 && distance >= s.window))
        of_pair.fill_(-std::numeric_limits<double>::infinity());
      for (std::int64_t text = 0; s.padding > 0 && text < kBatch; ++text)
        if (first + j < in[s.first_page() - 1].select(0, text).item<std::int64_t>())
          of_pair.select(0, text).fill_(-1e9);
      for (std::int64_t head = 0; s.alibi && head < kHeads; ++head)
        of_pair.select(1, head).sub_(kSlopes[head] * static_cast<double>(distance));
    }
  return at::matmul(at::softmax(scores, 3), value);
}

// Of all keys and values put together.
Tensors attended(const Sizes& s, const Tensors& in) {
  const std::int64_t width = s.key_heads * kSize, before = s.before(), keys = before + s.tokens;
  const at::Tensor page = s.filled > 0 ? in.back() : at::zeros({s.rows(), 2, kBatch, width}, in[0].options());
  std::vector<at::Tensor> all;
  for (const std::int64_t part : {0, 1}) {
    page.select(1, part)
        .narrow(0, s.filled, s.tokens)
        .copy_(in[static_cast<std::size_t>(1 + part)].view({kBatch, s.tokens, width}).transpose(0, 1));
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < s.pages.size(); ++i) parts.push_back(in[s.first_page() + i].select(1, part));
    parts.push_back(page.select(1, part));
    const std::int64_t first = s.tokens == 1 && s.window > 0 && s.window < keys ? keys - s.window : 0;
    all.push_back(heads_of(at::cat(parts).narrow(0, first, keys - first), s.key_heads));
  }
  const at::Tensor query = in[0].view({kBatch, s.tokens, kHeads, kSize}).transpose(1, 2);
  const at::Tensor out = s.scored() ? by_scores(s, query, all[0], all[1], in)
                                    : at::scaled_dot_product_attention(query, all[0], all[1], {}, 0.0, s.tokens > 1);
  for (std::int64_t text = 0; s.padding > 0 && s.tokens > 1 && text < kBatch; ++text)
    out.select(0, text).narrow(1, 0, in[s.first_page() - 1].select(0, text).item<std::int64_t>()).zero_();
  Tensors made = {out.transpose(1, 2).reshape({kBatch * s.tokens, kHeads * kSize})};
  if (s.filled == 0) made.push_back(page);
  return made;
}

PrimitiveCase paged(const std::string& name, const Sizes& s) {
  const std::int64_t width = s.key_heads * kSize, rows = kBatch * s.tokens;
  PrimitiveCase c;
  c.name = "paged_attention_" + name;
  c.inputs = {{{rows, kHeads * kSize}}, {{rows, width}}, {{rows, width}}};
  if (s.biases > 0) c.inputs.push_back({{kHeads, s.tokens, s.biases}});
  if (s.padding > 0) c.inputs.push_back({{kBatch}, s.padding + 1});
  for (const std::int64_t page : s.pages) c.inputs.push_back({{page, 2, kBatch, width}});
  if (s.filled > 0) c.carried = {{{kRows, 2, kBatch, width}}};
  c.goes_backward = false;
  c.build = [s](ModuleBuilder& m, const Locals& in) {
    const LocalId out = m.call("attention", "paged_attention", in,
                               {{"heads", kHeads},
                                {"key_heads", s.key_heads},
                                {"tokens", s.tokens},
                                {"position", s.before()},
                                {"rows", s.rows()},
                                {"fills", std::int64_t{s.filled > 0}},
                                {"alibi", std::int64_t{s.alibi}},
                                {"softcap", s.softcap},
                                {"bias", std::int64_t{s.biases > 0}},
                                {"padded", std::int64_t{s.padding > 0}},
                                {"window", s.window}});
    return s.filled > 0 ? Locals{out} : Locals{out, out + 1};
  };
  c.reference = [s](const Tensors& in, const Tensors&) { return attended(s, in); };
  c.fp32_error = 1e-6, c.bf16_error = s.scored() ? 3e-2 : 1e-2;  // keys lie in another order, and are summed so
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {paged("prompt", {.tokens = 7}),
          paged("prompt_of_groups", {.key_heads = 2, .tokens = 7}),
          paged("first_token", {}),
          paged("begins_page", {.pages = {7, kRows}}),
          paged("goes_on", {.pages = {7, kRows}, .filled = 2}),
          paged("fills_page", {.pages = {7}, .filled = kRows - 1}),
          paged("goes_on_with_groups", {.key_heads = 2, .pages = {7, kRows}, .filled = 3}),
          paged("window", {.pages = {7, kRows}, .filled = 2, .window = 4}),
          paged("window_of_groups", {.key_heads = 1, .pages = {7, kRows}, .filled = 1, .window = 9}),
          paged("prompt_beyond_window", {.key_heads = 2, .tokens = 7, .window = 3}),
          paged("falling_scores", {.tokens = 7, .alibi = true}),
          paged("falling_scores_of_a_token", {.key_heads = 3, .pages = {7, kRows}, .filled = 2, .alibi = true}),
          paged("falling_scores_in_a_window", {.pages = {7, kRows}, .filled = 2, .window = 4, .alibi = true}),
          paged("capped_scores", {.key_heads = 2, .tokens = 7, .softcap = 0.5}),
          paged("capped_scores_of_a_token", {.key_heads = 2, .pages = {7, kRows}, .filled = 2, .softcap = 0.5}),
          paged("biased_scores", {.tokens = 7, .biases = 11}),
          paged("biased_scores_of_a_token", {.pages = {7, kRows}, .filled = 2, .biases = 17}),
          paged("padded_prompt", {.tokens = 7, .padding = 6}),
          paged("padded_prompt_of_groups", {.key_heads = 2, .tokens = 40, .padding = 30}),
          paged("padded_prompt_beyond_window", {.key_heads = 2, .tokens = 7, .window = 3, .padding = 6}),
          paged("padded_prompt_of_falling_scores", {.tokens = 7, .alibi = true, .padding = 6}),
          paged("padded_token", {.key_heads = 2, .pages = {7, kRows}, .filled = 2, .padding = 6}),
          paged("padded_token_in_a_window", {.pages = {7}, .filled = 2, .window = 6, .padding = 6}),
          paged("long", {.key_heads = 3, .pages = {700, kRows}, .filled = 1})};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
