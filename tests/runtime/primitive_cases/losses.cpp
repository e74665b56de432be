// Losses beside cross entropy, and what comes before one.
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/norm.h>

#include <string>

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

// Of the first `count` pairs alone, as if there were no others.
at::Tensor clip_of(const at::Tensor& image, const at::Tensor& text, const at::Tensor& scale, std::int64_t count) {
  if (count == 0) return (image.sum() + text.sum() + scale.sum()).to(at::kFloat) * 0;
  const at::Tensor products = at::mm(image.to(at::kFloat), text.to(at::kFloat).t());
  const at::Tensor logits = (products * scale.to(at::kFloat).exp()).slice(0, 0, count).slice(1, 0, count);
  const at::Tensor own = at::arange(count);
  return (at::cross_entropy_loss(logits, own) + at::cross_entropy_loss(logits.t(), own)) / 2;
}

// Three kinds of pairs, of batches of different sizes; their counts are drawn, or but one are none. From 60 rows on
// LibTorch turns squares block by block, with a temporary of its own.
PrimitiveCase kinds(bool counted, bool any = true, std::int64_t most = 11) {
  PrimitiveCase c;
  c.name = most > 11  ? "contrastive_of_many"
           : !counted ? "contrastive_kinds"
           : any      ? "contrastive_counted_kinds"
                      : "contrastive_without_pairs";
  for (const std::int64_t rows : {most, std::int64_t{7}, std::int64_t{5}}) {
    c.inputs.push_back({{rows, 24}}), c.inputs.push_back({{rows, 24}});
    if (counted) c.inputs.push_back({{1}, any || rows == 7 ? rows + 1 : 1});
  }
  const std::size_t stride = counted ? 3 : 2;
  c.build = [counted, stride](ModuleBuilder& m, const Locals& in) {
    Locals all = in;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (i % stride < 2) all[i] = m.call("unit" + std::to_string(i), "normalise_rows", {in[i]}, {});
    return Locals{m.call("loss", "contrastive", all, {{"kinds", std::int64_t{3}}, {"counted", std::int64_t{counted}}})};
  };
  c.reference = [counted, stride](const Tensors& in, const Tensors& w) {
    at::Tensor sum;
    for (std::size_t k = 0; k < 3; ++k) {
      const at::Tensor image = normalised(in[k * stride]), text = normalised(in[k * stride + 1]);
      const at::Tensor loss =
          counted ? clip_of(image, text, w[k], in[k * stride + 2].item<std::int64_t>()) : clip(image, text, w[k]);
      sum = sum.defined() ? sum + loss : loss;
    }
    return Tensors{sum / 3};
  };
  // Sums over what is left have another order than those with zeros between.
  if (counted) c.fp32_error = 1e-6, c.bf16_error = 1e-2;
  return c;
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
  return {squared,
          normalise,
          contrastive,
          kinds(false),
          kinds(true),
          kinds(true, /*any=*/false),
          kinds(true, /*any=*/true, 67)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
