#include "runtime/imported/attention.hpp"

#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>

#include <optional>

namespace tandem {
namespace {

using at::Tensor;

// What follows the tensors: dropout (0), causal, mask, scale.
struct Options {
  Options(const ImportedCall& call, std::size_t first, const std::vector<Tensor>& values)
      : causal(std::get<bool>(std::get<PlainNumber>(call.arguments[first + 1]))) {
    if (const auto* reference = std::get_if<ValueRef>(&call.arguments[first + 2]))
      mask = values[static_cast<std::size_t>(reference->value)];
    if (const auto* number = std::get_if<PlainNumber>(&call.arguments[first + 3]))
      scale = std::visit([](auto n) { return static_cast<double>(n); }, *number);
  }
  bool causal;
  std::optional<Tensor> mask;
  std::optional<double> scale;
};

const Tensor& tensor(const ImportedCall& call, std::size_t i, const std::vector<Tensor>& values) {
  return values[static_cast<std::size_t>(std::get<ValueRef>(call.arguments[i]).value)];
}

// A GPU's kernel reads masks in rows of whole blocks, and keeps a number for each query of whole blocks.
constexpr std::int64_t kMaskBlock = 16, kQueryBlock = 32;

Tensor in_whole_blocks(const Tensor& x, std::int64_t block) {
  const std::int64_t over = x.size(-1) % block;
  return over == 0 ? x : at::constant_pad_nd(x, {0, block - over});
}

// A GPU's kernel takes as many heads of keys as of queries.
Tensor for_all_heads(const Tensor& x, const Tensor& q) {
  const std::int64_t group = q.size(1) / x.size(1);
  return group == 1 ? x : x.repeat_interleave(group, 1);
}
// In memory by tokens and then heads, as kernels leave gradients: what comes after views it so.
Tensor of_groups(const Tensor& gradient, const Tensor& x) {
  if (gradient.size(1) == x.size(1)) return gradient;
  const std::int64_t heads = x.size(1), group = gradient.size(1) / heads;
  return gradient.transpose(1, 2).unflatten(2, {heads, group}).sum(3).transpose(1, 2);
}

// FlashAttention takes 16-bit numbers in heads of some sizes, without a mask, and lets a token see those before it from
// the last query on, where PyTorch counts from the first.
bool takes_flash(const Options& o, const Tensor& q, const Tensor& k) {
  const bool narrow = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  return narrow && !o.mask && q.size(3) % 8 == 0 && q.size(3) <= 256 && (!o.causal || q.size(2) == k.size(2));
}

std::optional<Tensor> bias_of(const Options& o, const Tensor& q, const Tensor& k) {
  if (!o.mask) return std::nullopt;
  const std::int64_t keys = k.size(2);
  return in_whole_blocks(o.mask->expand({q.size(0), q.size(1), q.size(2), keys}), kMaskBlock).slice(-1, 0, keys);
}

}  // namespace

std::vector<at::Tensor> imported_attention(const ImportedCall& call, const std::vector<at::Tensor>& values) {
  const Options o(call, 3, values);
  const at::Tensor &q = tensor(call, 0, values), &k = tensor(call, 1, values), &v = tensor(call, 2, values);
  if (!q.is_cuda()) {
    const auto [out, kept] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, o.causal, o.mask, o.scale);
    return {out, kept};
  }
  if (takes_flash(o, q, k)) {
    const auto result =
        at::_scaled_dot_product_flash_attention(q, for_all_heads(k, q), for_all_heads(v, q), 0.0, o.causal,
                                                /*return_debug_mask=*/false, o.scale);
    return {std::get<0>(result), std::get<1>(result)};
  }
  const auto [out, kept, seed, offset] = at::_scaled_dot_product_efficient_attention(
      q, for_all_heads(k, q), for_all_heads(v, q), bias_of(o, q, k), true, 0.0, o.causal, o.scale);
  return {out, kept.slice(2, 0, q.size(2)).contiguous()};
}

std::vector<at::Tensor> imported_attention_backward(const ImportedCall& call, const std::vector<at::Tensor>& values) {
  const Options o(call, 6, values);
  const at::Tensor &gradient = tensor(call, 0, values), &q = tensor(call, 1, values), &k = tensor(call, 2, values),
                   &v = tensor(call, 3, values), &out = tensor(call, 4, values), &kept = tensor(call, 5, values);
  if (!q.is_cuda()) {
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(gradient, q, k, v, out, kept,
                                                                                       0.0, o.causal, o.mask, o.scale);
    return {dq, dk, dv};
  }
  const at::Tensor seed = at::empty({2}, q.options().dtype(at::kUInt64)), no_offset = at::empty({}, seed.options());
  if (takes_flash(o, q, k)) {
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
        gradient, q, for_all_heads(k, q), for_all_heads(v, q), out, kept.contiguous(), {}, {}, q.size(2), k.size(2),
        0.0, o.causal, seed, no_offset, o.scale);
    return {dq, of_groups(dk, k), of_groups(dv, v)};
  }
  const auto [dq, dk, dv, dbias] = at::_scaled_dot_product_efficient_attention_backward(
      gradient, q, for_all_heads(k, q), for_all_heads(v, q), bias_of(o, q, k).value_or(at::Tensor()), out,
      in_whole_blocks(kept, kQueryBlock), seed, no_offset, 0.0, {true, true, true, false}, o.causal, o.scale);
  return {dq, of_groups(dk, k), of_groups(dv, v)};
}

}  // namespace tandem
