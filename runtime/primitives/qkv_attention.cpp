#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>
#include <tuple>

#include "runtime/primitives/common/attention_pieces.hpp"

namespace tandem {
namespace {

using at::Tensor;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

// The operands of a fused kernel.
struct Fused {
  explicit Fused(const Arguments& a) : call(a.call), query(call.of_queries(a.in[0])) {
    // FlashAttention takes 16-bit numbers only, and nothing that is added to scores.
    flash = query.is_cuda() && query.scalar_type() != at::kFloat && !call.sizes.masked();
    grouped = flash || !query.is_cuda();
    const auto of_keys = [&](const Tensor& rows) {
      return grouped ? call.of_keys(rows) : call.repeated(call.of_keys(rows));
    };
    key = of_keys(a.in[1]), value = of_keys(a.in[2]);
    causal = call.sizes.causal && !call.sizes.masked();
    if (call.sizes.masked()) mask = call.mask(query.options()).unsqueeze(0);
  }
  // As the memory-efficient kernel wants it.
  std::optional<Tensor> whole_mask() const {
    const AttentionSizes& s = call.sizes;
    return mask ? std::optional(mask->expand({s.batch, s.heads, s.queries, s.keys})) : std::nullopt;
  }
  AttentionCall call;
  Tensor query, key, value;
  std::optional<Tensor> mask;
  bool flash = false, causal = false;
  bool grouped = false;  // heads of keys are as many as they are
};

// The memory-efficient kernel keeps a number for each query of whole blocks of so many.
constexpr std::int64_t kQueryBlock = 32;

// [batch, heads, queries] as that kernel wants it back. What is beyond the queries is read, and weighs nothing.
Tensor in_whole_blocks(const Tensor& logsumexp) {
  const std::int64_t over = logsumexp.size(2) % kQueryBlock;
  return over == 0 ? logsumexp : at::constant_pad_nd(logsumexp, {0, kQueryBlock - over});
}

void forward(Arguments& a) {
  if (!AttentionSizes(a.call.how, a.call.shapes).fused()) return composed_attention(a);
  const Fused f(a);
  const AttentionSizes& s = f.call.sizes;
  const double scale = f.call.scale();
  Tensor out, kept;
  if (!f.query.is_cuda()) {
    std::tie(out, kept) = at::_scaled_dot_product_flash_attention_for_cpu(f.query, f.key, f.value, /*dropout=*/0.0,
                                                                          f.causal, f.mask, scale);
    kept = kept.transpose(1, 2);
  } else if (f.flash) {
    const auto result = at::_scaled_dot_product_flash_attention(f.query, f.key, f.value, 0.0, f.causal,
                                                                /*return_debug_mask=*/false, scale);
    out = std::get<0>(result), kept = std::get<1>(result);
  } else {
    const auto result = at::_scaled_dot_product_efficient_attention(f.query, f.key, f.value, f.whole_mask(),
                                                                    /*compute_log_sumexp=*/true, 0.0, f.causal, scale);
    out = std::get<0>(result), kept = std::get<1>(result).slice(2, 0, s.queries);
  }
  f.call.of_queries(a.out[0]).copy_(out);
  // On a GPU in the kernel's own order: [batch, heads, queries].
  if (a.saved[0].defined()) (kept.is_cuda() ? a.saved[0].view({s.batch, s.heads, s.queries}) : a.saved[0]).copy_(kept);
}

ThreeTensors device_backward(const Fused& f, const Tensor& grad, const Tensor& out, const Tensor& kept) {
  const AttentionSizes& s = f.call.sizes;
  const double scale = f.call.scale();
  const Tensor logsumexp = kept.view({s.batch, s.heads, s.queries});
  const Tensor seed = at::empty({2}, grad.options().dtype(at::kUInt64)), no_offset = at::empty({}, seed.options());
  if (f.flash)
    return at::_scaled_dot_product_flash_attention_backward(grad, f.query, f.key, f.value, out, logsumexp, {}, {},
                                                            s.queries, s.keys, 0.0, f.causal, seed, no_offset, scale);
  const auto result = at::_scaled_dot_product_efficient_attention_backward(
      grad, f.query, f.key, f.value, f.whole_mask().value_or(Tensor()), out, in_whole_blocks(logsumexp), seed,
      no_offset, 0.0, {true, true, true, false}, f.causal, scale);
  return {std::get<0>(result), std::get<1>(result), std::get<2>(result)};
}

void backward(Arguments& a) {
  if (!AttentionSizes(a.call.how, a.call.shapes).fused()) return composed_attention_backward(a);
  const Fused f(a);
  const Tensor grad = f.call.of_queries(a.output_gradient), out = f.call.of_queries(a.out[0]);
  const auto [query, key, value] = grad.is_cuda()
                                       ? device_backward(f, grad, out, a.saved[0])
                                       : ThreeTensors(at::_scaled_dot_product_flash_attention_for_cpu_backward(
                                             grad, f.query, f.key, f.value, out, a.saved[0].transpose(1, 2),
                                             /*dropout=*/0.0, f.causal, f.mask, f.call.scale()));
  const std::vector<GradientOut>& gradients = a.input_gradients;
  if (gradients[0].wanted())
    gradients[0].viewed([&](const Tensor& rows) { return f.call.of_queries(rows); }).take(query);
  const auto take = [&](const GradientOut& gradient, const Tensor& made) {
    if (!gradient.wanted()) return;
    if (!f.grouped) return f.call.take_repeated(gradient, made);
    gradient.viewed([&](const Tensor& rows) { return f.call.of_keys(rows); }).take(made);
  };
  take(gradients[1], key);
  take(gradients[2], value);
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const AttentionCall call(c.call);
  const AttentionSizes& s = call.sizes;
  if (!s.fused()) return {composed_attention_reference(c)};
  std::optional<Tensor> mask;
  if (s.masked()) mask = call.mask(c.in[0].options()).unsqueeze(0);
  const Tensor out = at::scaled_dot_product_attention(
      call.of_queries(c.in[0]), call.of_keys(c.in[1]), call.of_keys(c.in[2]), mask, /*dropout_p=*/0.0,
      s.causal && !s.masked(), call.scale(), /*enable_gqa=*/s.group() > 1);
  return {out.transpose(1, 2).reshape(c.in[0].sizes())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(qkv_attention, forward, backward, reference)
