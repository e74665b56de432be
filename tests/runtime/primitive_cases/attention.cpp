#include <ATen/ops/scaled_dot_product_attention.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kBatch = 2, kSequence = 37, kHeads = 3, kSize = 8, kHidden = kHeads * kSize;

at::Tensor fused(const at::Tensor& qkv, bool causal) {
  const auto parts = qkv.view({kBatch, kSequence, 3, kHeads, kSize}).permute({2, 0, 3, 1, 4}).unbind(0);
  return at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, causal)
      .transpose(1, 2)
      .reshape({kBatch * kSequence, kHidden});
}

PrimitiveCase attention(const std::string& name, bool causal) {
  constexpr std::int64_t kProduct = 2 * kBatch * kHeads * kSequence * kSequence * kSize;
  PrimitiveCase c;
  c.name = name;
  c.inputs = {{{kBatch * kSequence, 3 * kHidden}}};
  c.build = [causal](ModuleBuilder& m, const Locals& in) {
    return Locals{m.attention("attention", in[0], {kHeads, kSequence, causal})};
  };
  c.reference = [causal](const Tensors& in, const Tensors&) { return Tensors{fused(in[0], causal)}; };
  c.forward_flops = 2 * kProduct, c.backward_flops = 5 * kProduct;
  return c;
}

std::vector<PrimitiveCase> cases() { return {attention("attention", false), attention("attention_causal", true)}; }

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
