// A ring of one rank, whose only round is the first and the last. Rounds of more ranks:
// tests/runtime/ring_rounds_test.cpp.
#include <ATen/ops/scaled_dot_product_attention.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

struct Shape {
  std::int64_t heads, key_heads, queries, keys, causal;
};
constexpr std::int64_t kBatch = 2, kSize = 8;

at::Tensor heads_of(const at::Tensor& rows, std::int64_t heads) {
  return rows.view({kBatch, -1, heads, kSize}).transpose(1, 2);
}

PrimitiveCase attention(const std::string& name, const Shape& s) {
  PrimitiveCase c;
  c.name = "ring_attention_" + name;
  c.inputs = {{{kBatch * s.queries, s.heads * kSize}}, {{kBatch * s.keys, 2 * s.key_heads * kSize}}};
  Attributes how = {{"heads", s.heads},   {"key_heads", s.key_heads}, {"queries", s.queries},    {"keys", s.keys},
                    {"causal", s.causal}, {"last", std::int64_t{1}},  {"round", std::int64_t{0}}};
  c.build = [how](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("attention", "ring_attention", in, how)};
  };
  c.reference = [=](const Tensors& in, const Tensors&) {
    const std::int64_t columns = s.key_heads * kSize;
    const at::Tensor out = at::scaled_dot_product_attention(
        heads_of(in[0], s.heads), heads_of(in[1].narrow(1, 0, columns), s.key_heads),
        heads_of(in[1].narrow(1, columns, columns), s.key_heads), {}, 0.0, s.causal != 0, std::nullopt,
        /*enable_gqa=*/s.heads != s.key_heads);
    return Tensors{out.transpose(1, 2).reshape(in[0].sizes())};
  };
  // The primitive's reference makes scores in fp32 and adds up by products: in 16 bits the kernel rounds probabilities.
  c.fp32_error = 1e-6, c.bf16_error = 1e-2;
  const std::int64_t product = 2 * kBatch * s.heads * s.queries * s.keys * kSize;
  c.forward_flops = 2 * product;
  c.backward_flops = 5 * product;
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {attention("plain", {4, 4, 37, 37, 0}), attention("causal", {3, 3, 37, 37, 1}),
          attention("grouped", {4, 2, 37, 37, 1}), attention("of_one_key_head", {4, 1, 33, 33, 1}),
          attention("of_other_keys", {6, 2, 45, 21, 0})};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
