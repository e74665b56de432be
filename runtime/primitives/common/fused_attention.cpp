#include "runtime/primitives/common/fused_attention.hpp"

#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>

#include <tuple>
#include <utility>

namespace tandem {
namespace {

using at::Tensor;

// The memory-efficient kernel keeps a number for each query of whole blocks of so many.
constexpr std::int64_t kQueryBlock = 32;

// [batch, heads, queries] as that kernel wants it back. What is beyond the queries is read, and weighs nothing.
Tensor in_whole_blocks(const Tensor& logsumexp) {
  const std::int64_t over = logsumexp.size(2) % kQueryBlock;
  return over == 0 ? logsumexp : at::constant_pad_nd(logsumexp, {0, kQueryBlock - over});
}

// Each head as often as heads of queries read it: a copy, where that is more than once.
Tensor repeated(const FusedAttention& f, const Tensor& keys) {
  const std::int64_t group = f.query.size(1) / keys.size(1);
  if (group == 1) return keys;
  return keys.unsqueeze(2)
      .expand({keys.size(0), keys.size(1), group, keys.size(2), keys.size(3)})
      .reshape({keys.size(0), f.query.size(1), keys.size(2), keys.size(3)});
}

// As the memory-efficient kernel wants it.
std::optional<Tensor> whole_mask(const FusedAttention& f) {
  if (!f.mask) return std::nullopt;
  return f.mask->expand({f.query.size(0), f.query.size(1), f.query.size(2), f.key.size(2)});
}

}  // namespace

FusedResult fused_attention(const FusedAttention& f) {
  if (!f.query.is_cuda()) {
    auto [out, kept] = at::_scaled_dot_product_flash_attention_for_cpu(f.query, f.key, f.value, /*dropout=*/0.0,
                                                                       f.causal, f.mask, f.scale);
    return {std::move(out), std::move(kept)};
  }
  if (f.by_flash()) {
    const auto result = at::_scaled_dot_product_flash_attention(f.query, f.key, f.value, 0.0, f.causal,
                                                                /*return_debug_mask=*/false, f.scale);
    return {std::get<0>(result), std::get<1>(result)};
  }
  const auto result =
      at::_scaled_dot_product_efficient_attention(f.query, repeated(f, f.key), repeated(f, f.value), whole_mask(f),
                                                  /*compute_log_sumexp=*/true, 0.0, f.causal, f.scale);
  return {std::get<0>(result), std::get<1>(result).slice(2, 0, f.query.size(2))};
}

FusedGradients fused_attention_backward(const FusedAttention& f, const Tensor& output_gradient, const Tensor& out,
                                        const Tensor& logsumexp) {
  if (!f.query.is_cuda()) {
    auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        output_gradient, f.query, f.key, f.value, out, logsumexp, /*dropout=*/0.0, f.causal, f.mask, f.scale);
    return {std::move(query), std::move(key), std::move(value)};
  }
  const Tensor seed = at::empty({2}, output_gradient.options().dtype(at::kUInt64)),
               no_offset = at::empty({}, seed.options()), by_query = logsumexp.contiguous();
  if (f.by_flash()) {
    auto [query, key, value] = at::_scaled_dot_product_flash_attention_backward(
        output_gradient, f.query, f.key, f.value, out, by_query, {}, {}, f.query.size(2), f.key.size(2), 0.0, f.causal,
        seed, no_offset, f.scale);
    return {std::move(query), std::move(key), std::move(value)};
  }
  const auto result = at::_scaled_dot_product_efficient_attention_backward(
      output_gradient, f.query, repeated(f, f.key), repeated(f, f.value), whole_mask(f).value_or(Tensor()), out,
      in_whole_blocks(by_query), seed, no_offset, 0.0, {true, true, true, false}, f.causal, f.scale);
  return {std::get<0>(result), std::get<1>(result), std::get<2>(result)};
}

Tensor by_key_heads(const FusedAttention& f, const Tensor& gradient) {
  const std::int64_t heads = f.key.size(1), group = f.query.size(1) / heads;
  return f.reads_groups() || group == 1 ? gradient : gradient.unflatten(1, {heads, group}).sum(2);
}

}  // namespace tandem
