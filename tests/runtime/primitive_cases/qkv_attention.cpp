#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <optional>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

struct Shape {
  std::int64_t heads, key_heads, queries, keys, causal = 0, window = 0, alibi = 0;
  double scale = 0, softcap = 0;
  bool biased = false;
};
constexpr std::int64_t kBatch = 2, kSize = 8;

at::Tensor heads_of(const at::Tensor& rows, std::int64_t heads) {
  return rows.view({kBatch, -1, heads, kSize}).transpose(1, 2);
}

at::Tensor rows_of(const at::Tensor& heads) { return heads.transpose(1, 2).reshape({-1, heads.size(1) * kSize}); }

// ALiBi's slopes for a number of heads that is a power of two: 2^(-8 i / heads).
at::Tensor mask(const Shape& s, at::ScalarType type) {
  const at::Tensor behind = at::arange(s.queries).unsqueeze(1) - at::arange(s.keys).unsqueeze(0);
  at::Tensor hidden = at::zeros({s.queries, s.keys}, at::kBool);
  if (s.causal != 0) hidden = hidden.bitwise_or(behind < 0);
  if (s.window > 0) hidden = hidden.bitwise_or(behind.abs() >= s.window);
  Tensors by_head;
  for (std::int64_t head = 0; head < (s.alibi != 0 ? s.heads : 1); ++head) {
    const double slope =
        s.alibi != 0 ? std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(s.heads)) : 0;
    by_head.push_back(
        (behind.abs().to(at::kFloat) * -slope).masked_fill(hidden, -std::numeric_limits<double>::infinity()));
  }
  return at::stack(by_head).to(type);
}

at::Tensor fused(const Shape& s, const Tensors& in) {
  std::optional<at::Tensor> added;
  if (s.window > 0 || s.alibi != 0) added = mask(s, in[0].scalar_type()).unsqueeze(0);
  const std::optional<double> scale = s.scale > 0 ? std::optional(s.scale) : std::nullopt;
  return rows_of(at::scaled_dot_product_attention(heads_of(in[0], s.heads), heads_of(in[1], s.key_heads),
                                                  heads_of(in[2], s.key_heads), added, 0.0,
                                                  s.causal != 0 && !added.has_value(), scale,
                                                  /*enable_gqa=*/s.heads != s.key_heads));
}

at::Tensor composed(const Shape& s, const Tensors& in) {
  const auto merged = [&](const at::Tensor& rows, std::int64_t heads) {
    return heads_of(rows, heads).repeat_interleave(s.heads / heads, 1).contiguous().flatten(0, 1);
  };
  at::Tensor scores = at::bmm(merged(in[0], s.heads), merged(in[1], s.key_heads).transpose(1, 2));
  scores = scores * (s.scale > 0 ? s.scale : 1 / std::sqrt(static_cast<double>(kSize)));
  if (s.softcap > 0) scores = at::tanh(scores / s.softcap) * s.softcap;
  scores = scores.view({kBatch, s.heads, s.queries, s.keys});
  if (s.biased) scores = scores + in[3];
  if (s.causal != 0 || s.window > 0 || s.alibi != 0) scores = scores + mask(s, scores.scalar_type());
  const at::Tensor out = at::bmm(at::softmax(scores.flatten(0, 1), -1), merged(in[2], s.key_heads));
  return rows_of(out.view({kBatch, s.heads, s.queries, kSize}));
}

PrimitiveCase attention(const std::string& name, const Shape& s) {
  PrimitiveCase c;
  c.name = "qkv_attention_" + name;
  const std::vector<std::int64_t> keys = {kBatch * s.keys, s.key_heads * kSize};
  c.inputs = {{{kBatch * s.queries, s.heads * kSize}}, {keys}, {keys}};
  if (s.biased) c.inputs.push_back({{s.heads, s.queries, s.keys}});
  Attributes how = {{"heads", s.heads},     {"key_heads", s.key_heads},
                    {"queries", s.queries}, {"keys", s.keys},
                    {"causal", s.causal},   {"window", s.window},
                    {"alibi", s.alibi},     {"scale", s.scale},
                    {"softcap", s.softcap}, {"bias", std::int64_t{s.biased}}};
  c.build = [how](ModuleBuilder& m, const Locals& in) { return Locals{m.call("attention", "qkv_attention", in, how)}; };
  const bool is_fused = s.softcap == 0 && !s.biased;
  c.reference = [=](const Tensors& in, const Tensors&) { return Tensors{is_fused ? fused(s, in) : composed(s, in)}; };
  const std::int64_t product = 2 * kBatch * s.heads * s.queries * s.keys * kSize;
  c.forward_flops = 2 * product;
  // With a cap, scores are multiplied again.
  c.backward_flops = (is_fused || s.softcap > 0 ? 5 : 4) * product;
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {attention("plain", {4, 4, 37, 37}),
          attention("causal", {4, 4, 37, 37, 1}),
          attention("grouped", {4, 2, 37, 37, 1}),
          attention("of_one_key_head", {4, 1, 33, 33, 1}),
          attention("cross", {3, 3, 21, 45}),
          attention("cross_grouped", {6, 2, 45, 21}),
          attention("scaled", {3, 3, 19, 19, 1, 0, 0, 0.2}),
          attention("of_many_queries", {2, 1, 201, 201, 1}),
          attention("of_more_queries", {2, 2, 773, 773, 1}),
          attention("bias_large", {2, 2, 161, 161, 0, 0, 0, 1, 0, true}),
          attention("window", {4, 2, 37, 37, 1, 5}),
          attention("window_both_sides", {2, 2, 37, 37, 0, 5}),
          attention("alibi", {4, 4, 37, 37, 1, 0, 1}),
          attention("alibi_window_grouped", {4, 2, 37, 37, 1, 9, 1}),
          attention("softcap", {4, 2, 37, 37, 1, 0, 0, 0, 2.5}),
          attention("softcap_window", {4, 2, 37, 37, 1, 7, 0, 0.3, 2.5}),
          attention("bias", {3, 3, 29, 29, 0, 0, 0, 1, 0, true}),
          attention("bias_causal_grouped", {4, 2, 29, 29, 1, 0, 0, 1, 0, true}),
          attention("bias_cross", {3, 3, 17, 29, 0, 0, 0, 1, 0, true})};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
