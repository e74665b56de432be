#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kTokens = 23, kHidden = 12, kOutputs = 17;

// The whole is one product: tiles' gradients are sums in another order, which 16 bits round on the way.
PrimitiveCase tiled(const std::string& name, std::int64_t tiles, bool shared, bool bias, std::int64_t padding = 0) {
  PrimitiveCase c;
  c.name = name;
  c.inputs = {{{kTokens, kHidden}}, {{kTokens}, /*below=*/kOutputs, /*sometimes=*/-100}};
  if (shared) c.inputs.push_back({{kOutputs + padding, kHidden}});
  c.build = [=](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call(
        "output", "tiled_loss", in,
        {{"outputs", kOutputs + padding}, {"tiles", tiles}, {"bias", std::int64_t{bias}}, {"padding", padding}})};
  };
  c.reference = [=](const Tensors& in, const Tensors& w) {
    const std::optional<at::Tensor> by = bias ? std::optional(w.back()) : std::nullopt;
    const at::Tensor logits = at::linear(in[0], shared ? in[2] : w[0], by).narrow(1, 0, kOutputs);
    return Tensors{at::cross_entropy_loss(logits.to(at::kFloat), in[1])};
  };
  c.fp32_error = 5e-7, c.bf16_error = 6e-3;
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {tiled("tiled_loss", 4, false, true), tiled("tiled_loss_by_an_input", 4, true, false),
          tiled("tiled_loss_of_one_tile", 1, false, false), tiled("tiled_loss_beside_padding", 4, false, true, 3),
          tiled("tiled_loss_beside_padding_by_an_input", 4, true, false, 7)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
