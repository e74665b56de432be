// Losses beside cross entropy, and what comes before one.
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/norm.h>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

at::Tensor normalised(const at::Tensor& x) { return x / at::norm(x, 2, 1, /*keepdim=*/true); }

// As OpenAI's CLIP, in fp32.
at::Tensor clip(const at::Tensor& image, const at::Tensor& text, const at::Tensor& scale) {
  const at::Tensor products = at::mm(image.to(at::kFloat), text.to(at::kFloat).t());
  const at::Tensor logits = products * scale.to(at::kFloat).exp(), own = at::arange(image.size(0));
  return (at::cross_entropy_loss(logits, own) + at::cross_entropy_loss(logits.t(), own)) / 2;
}

std::vector<PrimitiveCase> cases() {
  PrimitiveCase squared;
  squared.name = "squared_error";
  squared.inputs = {{{2, 3, 5, 7}}, {{2, 3, 5, 7}}};
  squared.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.call("loss", "squared_error", in, {})}; };
  squared.reference = [](const Tensors& in, const Tensors&) {
    return Tensors{at::mse_loss(in[0].to(at::kFloat), in[1].to(at::kFloat))};
  };
  squared.forward_flops = squared.backward_flops = 0;

  PrimitiveCase normalise;
  normalise.name = "normalise_rows";
  normalise.inputs = {{{11, 24}}};
  normalise.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.call("x", "normalise_rows", in, {})}; };
  normalise.reference = [](const Tensors& in, const Tensors&) { return Tensors{normalised(in[0])}; };
  normalise.forward_flops = normalise.backward_flops = 0;

  PrimitiveCase contrastive;
  contrastive.name = "contrastive";
  contrastive.inputs = {{{11, 24}}, {{11, 24}}};
  contrastive.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{
        m.call("loss", "contrastive",
               {m.call("image", "normalise_rows", {in[0]}, {}), m.call("text", "normalise_rows", {in[1]}, {})}, {})};
  };
  contrastive.reference = [](const Tensors& in, const Tensors& w) {
    return Tensors{clip(normalised(in[0]), normalised(in[1]), w[0])};
  };
  contrastive.forward_flops = 2 * 11 * 11 * 24, contrastive.backward_flops = 2 * contrastive.forward_flops;
  return {squared, normalise, contrastive};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
