#include "runtime/primitives/common/attention_kernels.hpp"

#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>

#include <tuple>

#include "runtime/primitives/common/unfused_attention.hpp"

namespace tandem {
namespace {

// [tokens, hidden] at column `first` of a [tokens, columns] tensor as [batch, heads, sequence, head_size].
at::Tensor heads_of(const at::Tensor& rows, std::int64_t first, const AttentionShape& s) {
  const std::int64_t columns = rows.size(1);
  return rows.as_strided({s.batch, s.heads, s.sequence, s.head_size}, {s.sequence * columns, s.head_size, columns, 1},
                         rows.storage_offset() + first);
}

// The kernels lay their results out as [batch, sequence, heads, ...]: the views below copy nothing.
at::Tensor rows_of(const at::Tensor& heads, const AttentionShape& s) {
  return heads.transpose(1, 2).view({s.batch * s.sequence, s.heads * s.head_size});
}

Projections projections_of(const at::Tensor& qkv, const AttentionShape& s) {
  const std::int64_t hidden = s.heads * s.head_size;
  return {heads_of(qkv, 0, s), heads_of(qkv, hidden, s), heads_of(qkv, 2 * hidden, s)};
}

// FlashAttention takes 16-bit numbers only; fp32 goes to the memory-efficient kernel.
bool flash(const at::Tensor& x) { return x.scalar_type() != at::kFloat; }

// The memory-efficient kernel keeps a number for each query of whole blocks of so many.
constexpr std::int64_t kQueryBlock = 32;

// [batch, heads, sequence] as that kernel wants it back. What is beyond the sequence is read, and weighs nothing.
at::Tensor in_whole_blocks(const at::Tensor& logsumexp) {
  const std::int64_t sequence = logsumexp.size(2), over = sequence % kQueryBlock;
  return over == 0 ? logsumexp : at::constant_pad_nd(logsumexp, {0, kQueryBlock - over});
}

AttentionResult device_attention(const Projections& p, const AttentionShape& s) {
  if (flash(p.query)) {
    const auto result = at::_scaled_dot_product_flash_attention(p.query, p.key, p.value, /*dropout=*/0.0, s.causal);
    return {rows_of(std::get<0>(result), s), std::get<1>(result)};
  }
  const auto result = at::_scaled_dot_product_efficient_attention(p.query, p.key, p.value, /*attn_bias=*/{},
                                                                  /*compute_log_sumexp=*/true, 0.0, s.causal);
  return {rows_of(std::get<0>(result), s), std::get<1>(result).slice(2, 0, s.sequence).contiguous()};
}

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

ThreeTensors device_attention_backward(const at::Tensor& grad, const Projections& p, const AttentionResult& saved,
                                       const AttentionShape& s) {
  const at::Tensor out = heads_of(saved.out, 0, s);
  // Kept in the kernel's own order: [batch, heads, sequence].
  const at::Tensor logsumexp = saved.kept.view({s.batch, s.heads, s.sequence});
  const at::Tensor seed = at::empty({2}, p.query.options().dtype(at::kUInt64)),
                   no_offset = at::empty({}, seed.options());
  if (flash(p.query))
    return at::_scaled_dot_product_flash_attention_backward(grad, p.query, p.key, p.value, out, logsumexp, {}, {},
                                                            s.sequence, s.sequence, 0.0, s.causal, seed, no_offset);
  const auto result = at::_scaled_dot_product_efficient_attention_backward(grad, p.query, p.key, p.value, {}, out,
                                                                           in_whole_blocks(logsumexp), seed, no_offset,
                                                                           0.0, {true, true, true, false}, s.causal);
  return {std::get<0>(result), std::get<1>(result), std::get<2>(result)};
}

}  // namespace

AttentionResult attention(const at::Tensor& qkv, AttentionShape s) {
  const Projections p = projections_of(qkv, s);
  if (!s.fused) {
    const AttentionResult result = {at::empty({s.batch * s.sequence, s.heads * s.head_size}, qkv.options()),
                                    at::empty({s.batch * s.heads, s.sequence, s.sequence}, qkv.options())};
    unfused_attention_out(heads_of(result.out, 0, s), result.kept, p, s.causal);
    return result;
  }
  if (qkv.is_cuda()) return device_attention(p, s);
  const auto [out, logsumexp] =
      at::_scaled_dot_product_flash_attention_for_cpu(p.query, p.key, p.value, /*dropout=*/0.0, s.causal);
  return {rows_of(out, s), logsumexp.transpose(1, 2)};
}

void attention_out(const AttentionResult& saved, const at::Tensor& qkv, AttentionShape shape) {
  if (!shape.fused)
    return unfused_attention_out(heads_of(saved.out, 0, shape), saved.kept, projections_of(qkv, shape), shape.causal);
  const AttentionResult result = attention(qkv, shape);
  saved.out.copy_(result.out);
  saved.kept.copy_(qkv.is_cuda() ? result.kept.view_as(saved.kept) : result.kept);
}

void attention_backward(const at::Tensor& qkv_gradient, const at::Tensor& grad, const at::Tensor& qkv,
                        const AttentionResult& saved, AttentionShape s) {
  const Projections p = projections_of(qkv, s);
  const Projections gradients = projections_of(qkv_gradient, s);
  if (!s.fused) return unfused_attention_backward(gradients, heads_of(grad, 0, s), p, saved.kept);
  const auto [query, key, value] = qkv.is_cuda()
                                       ? device_attention_backward(heads_of(grad, 0, s), p, saved, s)
                                       : ThreeTensors(at::_scaled_dot_product_flash_attention_for_cpu_backward(
                                             heads_of(grad, 0, s), p.query, p.key, p.value, heads_of(saved.out, 0, s),
                                             saved.kept.transpose(1, 2), /*dropout=*/0.0, s.causal));
  gradients.query.copy_(query);
  gradients.key.copy_(key);
  gradients.value.copy_(value);
}

}  // namespace tandem
