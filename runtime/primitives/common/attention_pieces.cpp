#include "runtime/primitives/common/attention_pieces.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tandem {
namespace {

at::Tensor heads_of(const at::Tensor& rows, std::int64_t batch, std::int64_t heads) {
  return rows.view({batch, rows.size(0) / batch, heads, rows.size(1) / heads}).transpose(1, 2);
}

// ALiBi's (Press et al. 2022): a geometric series, and where heads are no power of two, every other one of the next.
std::vector<float> slopes(std::int64_t heads) {
  std::int64_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  std::vector<float> result;
  for (std::int64_t i = 0; i < heads; ++i) {
    const double steps = i < whole ? static_cast<double>(i + 1) / static_cast<double>(whole)
                                   : static_cast<double>(2 * (i - whole) + 1) / static_cast<double>(2 * whole);
    result.push_back(static_cast<float>(std::exp2(-8 * steps)));
  }
  return result;
}

}  // namespace

double AttentionCall::scale() const {
  return sizes.scale > 0 ? sizes.scale : 1 / std::sqrt(static_cast<double>(sizes.size));
}

at::Tensor AttentionCall::of_queries(const at::Tensor& rows) const { return heads_of(rows, sizes.batch, sizes.heads); }
at::Tensor AttentionCall::of_keys(const at::Tensor& rows) const { return heads_of(rows, sizes.batch, sizes.key_heads); }

at::Tensor AttentionCall::repeated(const at::Tensor& keys) const {
  if (sizes.group() == 1) return keys;
  return keys.unsqueeze(2)
      .expand({sizes.batch, sizes.key_heads, sizes.group(), sizes.keys, sizes.size})
      .reshape({sizes.batch, sizes.heads, sizes.keys, sizes.size});
}

void AttentionCall::take_repeated(const GradientOut& gradient, const at::Tensor& of_repeated) const {
  const GradientOut heads = gradient.viewed([&](const at::Tensor& rows) { return of_keys(rows); });
  if (sizes.group() == 1) return heads.take(of_repeated);
  heads.take(of_repeated.unflatten(1, {sizes.key_heads, sizes.group()}).sum(2));
}

at::Tensor AttentionCall::mask(const at::TensorOptions& options) const {
  return position_mask({sizes.heads, sizes.queries, sizes.keys, 0, sizes.window, sizes.causal, sizes.alibi}, options);
}

at::Tensor position_mask(const Positions& p, const at::TensorOptions& options) {
  constexpr std::int64_t kBlock = 16;  // a GPU's kernel reads a row in whole blocks
  const std::int64_t rows = p.alibi ? p.heads : 1, padded = (p.keys + kBlock - 1) / kBlock * kBlock;
  at::Tensor mask = at::empty({rows, p.queries, padded}, options).narrow(2, 0, p.keys);
  if (p.alibi) {
    const at::Tensor places = at::arange(p.keys, options.dtype(at::kFloat));
    const at::Tensor distance =
        at::sub(places.unsqueeze(0), places.narrow(0, p.first, p.queries).unsqueeze(1)).abs_().neg_();
    const std::vector<float> by_head = slopes(p.heads);
    for (std::int64_t head = 0; head < p.heads; ++head)
      mask.select(0, head).copy_(at::mul(distance, by_head[static_cast<std::size_t>(head)]));
  } else {
    mask.zero_();
  }
  if (!p.causal && p.window == 0) return mask;
  const auto all = [&] { return at::ones({p.queries, p.keys}, options.dtype(at::kBool)); };
  at::Tensor hidden = all();
  p.causal ? hidden.triu_(1 + p.first) : hidden.triu_(p.window + p.first);
  if (p.window > 0) hidden.bitwise_or_(all().tril_(p.first - p.window));
  mask.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  return mask;
}

}  // namespace tandem
