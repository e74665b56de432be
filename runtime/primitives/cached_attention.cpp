#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <limits>
#include <optional>

#include "core/model/cached_attention_shape.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Views of queries, and of keys and values up to the last new token, whose own are in the cache once this is made.
struct Cached {
  Cached(const Call& call, const Tensor& qkv, const Tensor& cache) : sizes(call.how, call.shapes) {
    for (const std::int64_t part : {0, 1})
      cache.select(0, part)
          .narrow(0, sizes.position, sizes.tokens)
          .copy_(qkv.narrow(1, (1 + part) * sizes.hidden, sizes.hidden));
    query = heads(qkv.narrow(1, 0, sizes.hidden));
    key = heads(cache.select(0, 0).narrow(0, 0, sizes.keys()));
    value = heads(cache.select(0, 1).narrow(0, 0, sizes.keys()));
  }
  // Of rows [tokens, hidden]: [1, heads, tokens, size].
  Tensor heads(const Tensor& rows) const {
    return rows.unflatten(1, {sizes.heads, sizes.size}).transpose(0, 1).unsqueeze(0);
  }
  // What is added to scores, [1, 1, tokens, keys]: minus infinity for keys that come after the query.
  std::optional<Tensor> mask() const {
    constexpr std::int64_t kBlock = 16;  // a GPU's kernel reads a row in whole blocks
    if (!sizes.masked()) return std::nullopt;
    const std::int64_t padded = (sizes.keys() + kBlock - 1) / kBlock * kBlock;
    Tensor mask = at::empty({sizes.tokens, padded}, query.options());
    mask.fill_(-std::numeric_limits<double>::infinity()).triu_(sizes.position + 1);
    return mask.narrow(1, 0, sizes.keys()).unsqueeze(0).unsqueeze(0);
  }
  CachedAttentionSizes sizes;
  Tensor query, key, value;
};

Tensor attend(const Cached& c) {
  std::optional<Tensor> mask = c.mask();
  const bool causal = c.sizes.causal();
  if (!c.query.is_cuda())
    return std::get<0>(
        at::_scaled_dot_product_flash_attention_for_cpu(c.query, c.key, c.value, /*dropout=*/0.0, causal, mask));
  // FlashAttention takes 16-bit numbers only, and nothing that is added to scores.
  if (c.query.scalar_type() != at::kFloat && !mask)
    return std::get<0>(at::_scaled_dot_product_flash_attention(c.query, c.key, c.value, 0.0, causal));
  if (mask) mask = mask->expand({1, c.sizes.heads, c.sizes.tokens, c.sizes.keys()});
  return std::get<0>(at::_scaled_dot_product_efficient_attention(c.query, c.key, c.value, mask,
                                                                 /*compute_log_sumexp=*/true, 0.0, causal));
}

void forward(Arguments& a) {
  const Cached c(a.call, a.in[0], a.in[1]);
  c.heads(a.out[0]).copy_(attend(c));
}

std::vector<Tensor> reference(const ReferenceCall& r) {
  const Cached c(r.call, r.in[0], r.in[1]);
  const Tensor out =
      at::scaled_dot_product_attention(c.query, c.key, c.value, c.mask(), /*dropout_p=*/0.0, c.sizes.causal());
  return {out.transpose(1, 2).reshape({c.sizes.tokens, c.sizes.hidden})};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(cached_attention, forward, nullptr, reference)
