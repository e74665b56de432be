#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "core/model/paged_attention_shape.hpp"
#include "runtime/primitives/common/attend_rows.hpp"
#include "runtime/primitives/common/attention_pieces.hpp"
#include "runtime/primitives/common/page_codes.hpp"
#include "runtime/torch_types.hpp"

#undef CHECK  // LibTorch's logging defines one, too
#include "core/base/check.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Of the CPU's, by one thread: LibTorch's would wait for more in their cores, which attend_rows() needs.
void copy_row_by_row(const Tensor& from, const Tensor& to) {
  CHECK(from.scalar_type() == to.scalar_type(), from.scalar_type(), to.scalar_type());
  for (std::int64_t i = 0; i < from.size(0); ++i)
    std::memcpy(static_cast<std::byte*>(to.mutable_data_ptr()) + i * to.stride(0) * to.element_size(),
                static_cast<const std::byte*>(from.const_data_ptr()) + i * from.stride(0) * from.element_size(),
                static_cast<std::size_t>(from.size(1) * from.element_size()));
}

// The pages of a call, the last of which has the new tokens' keys and values once this is made.
class Pages {
 public:
  // `begun`: the page that the call begins, else undefined.
  Pages(const Call& call, const std::vector<Tensor>& in, const Tensor& begun)
      : sizes(call.how, call.shapes), type(call.shapes.in[0].type) {
    pages_.assign(in.begin() + static_cast<std::ptrdiff_t>(sizes.first_page()), in.end());
    if (!sizes.fills) pages_.push_back(begun);
    if (sizes.padded) padding_ = in[sizes.values()];
    const std::int64_t width = sizes.heads * sizes.size;
    for (const std::int64_t part : {0, 1, 2})
      rows_.push_back(sizes.fused_input ? in[0].narrow(1, part * width, width) : in[static_cast<std::size_t>(part)]);
    keep();
    if (sizes.bits > 0 && sizes.tokens == 1) numbers_ = decoded();
  }
  Tensor query() const { return of_rows(rows_[0], sizes.heads); }
  // Keys (0) or values (1), [batch, key_heads, keys, size]: a prompt's own, or those of all pages that a token sees.
  Tensor seen(std::int64_t part) const {
    if (sizes.tokens > 1) return of_rows(rows_[static_cast<std::size_t>(1 + part)], sizes.key_heads);
    const Tensor all = numbers_.defined() ? numbers_.select(1, part).narrow(2, 0, sizes.key_width()) : together(part);
    return all.unflatten(2, {sizes.key_heads, sizes.size}).permute({1, 2, 0, 3});
  }
  // Those rows of pages that a token sees, where they lie: [rows, 2, batch, width] each.
  std::vector<Tensor> rows_seen() const {
    if (numbers_.defined()) return {numbers_};
    std::vector<Tensor> pieces;
    for_seen_rows([&](const Tensor& page, std::int64_t in_page, std::int64_t, std::int64_t count) {
      pieces.push_back(page.narrow(0, in_page, count));
    });
    return pieces;
  }
  const Tensor& query_rows() const { return rows_[0]; }
  // Of rows [batch tokens, heads size]: [batch, heads, tokens, size].
  Tensor of_rows(const Tensor& rows, std::int64_t heads) const {
    return rows.unflatten(1, {heads, sizes.size}).unflatten(0, {sizes.batch, sizes.tokens}).transpose(1, 2);
  }
  // How many of its first keys each text does not see, [batch]; undefined: none.
  const Tensor& padding() const { return padding_; }
  double scale() const { return sizes.scale > 0 ? sizes.scale : 1 / std::sqrt(static_cast<double>(sizes.size)); }
  PagedAttentionSizes sizes;
  DType type;

 private:
  void keep() const {
    std::int64_t at = sizes.position;
    for (std::size_t i = 0; i + 1 < pages_.size(); ++i) at -= pages_[i].size(0);
    const Tensor& page = pages_.back();
    const Tensor place = page.narrow(0, at, sizes.tokens);
    if (sizes.bits > 0)
      encode(place);
    else if (sizes.tokens == 1 && !place.is_cuda())
      for (const std::int64_t part : {0, 1}) copy_row_by_row(new_rows(part)[0], place.select(1, part)[0]);
    else
      for (const std::int64_t part : {0, 1}) place.select(1, part).copy_(new_rows(part));
    // No token sees the rest before it is written, and what leaves the device follows from the run alone.
    if (!sizes.fills) page.narrow(0, at + sizes.tokens, page.size(0) - at - sizes.tokens).zero_();
  }
  // Keys (0) or values (1) of the new tokens, [tokens, batch, key_width].
  Tensor new_rows(std::int64_t part) const {
    return rows_[static_cast<std::size_t>(1 + part)].unflatten(0, {sizes.batch, sizes.tokens}).transpose(0, 1);
  }
  // Some tokens at a time, in fp32.
  void encode(const Tensor& codes) const {
    const std::int64_t most = sizes.tokens_at_once();
    for (std::int64_t first = 0; first < sizes.tokens; first += most) {
      const std::int64_t count = std::min(most, sizes.tokens - first);
      const Tensor wide =
          at::zeros({count, 2, sizes.batch, sizes.padded_width()}, rows_[1].options().dtype(at::kFloat));
      for (const std::int64_t part : {0, 1})
        wide.select(1, part).narrow(2, 0, sizes.key_width()).copy_(new_rows(part).narrow(0, first, count));
      encode_page(wide, sizes.bits, codes.narrow(0, first, count));
    }
  }
  // [seen, 2, batch, padded width], the oldest first.
  Tensor decoded() const {
    const std::int64_t from = sizes.keys() - sizes.seen();
    const Tensor all = at::empty({sizes.seen(), 2, sizes.batch, sizes.padded_width()}, rows_[0].options());
    for_seen_rows([&](const Tensor& page, std::int64_t in_page, std::int64_t begin, std::int64_t count) {
      decode_page(page.narrow(0, in_page, count), sizes.bits, type, all.narrow(0, begin - from, count));
    });
    return all;
  }
  // Of each page with rows that a token sees: where they begin in it, and among all, and how many they are.
  template <typename Visit>
  void for_seen_rows(const Visit& visit) const {
    const std::int64_t from = sizes.keys() - sizes.seen();
    std::int64_t first = 0;  // of the page
    for (const Tensor& page : pages_) {
      const std::int64_t begin = std::max(from, first), end = std::min(sizes.keys(), first + page.size(0));
      if (begin < end) visit(page, begin - first, begin, end - begin);
      first += page.size(0);
    }
  }
  // [seen, batch, key_width], the oldest first.
  Tensor together(std::int64_t part) const {
    const std::int64_t from = sizes.keys() - sizes.seen();
    const Tensor all = at::empty({sizes.seen(), sizes.batch, sizes.key_width()}, pages_.back().options());
    for_seen_rows([&](const Tensor& page, std::int64_t in_page, std::int64_t begin, std::int64_t count) {
      all.narrow(0, begin - from, count).copy_(page.select(1, part).narrow(0, in_page, count));
    });
    return all;
  }

  std::vector<Tensor> pages_, rows_;
  Tensor padding_;
  Tensor numbers_;  // of codes that are seen
};

// What is added to scores [batch, heads, tokens, keys] for positions; undefined: nothing.
Tensor mask_of(const PagedAttentionSizes& s, std::int64_t keys, const at::TensorOptions& options) {
  if (!s.alibi && !s.causal()) return {};
  return position_mask(
      {s.heads, s.tokens, keys, keys - s.tokens, s.hides_in_prompt() ? s.window : 0, s.causal(), s.alibi}, options);
}

// Of each text, which of so many keys, the latest, are padding: [batch, keys].
Tensor is_padding(const Pages& p, std::int64_t keys) {
  return at::arange(p.sizes.keys() - keys, p.sizes.keys(), p.padding().options()).lt(p.padding().unsqueeze(1));
}

// A score of what no token of a text sees, whose share is 0 in fp32 beside any other, scaled or not. Padding sees
// nothing else: it is a number of fp16 so that no softmax of it comes to NaN, which would spread to others' sums.
constexpr double kOutOfSight = -60000;

// Scores in memory: for what no fused kernel takes. Heads that share keys are as many queries of theirs. `bias`: what
// is added to scores; undefined: nothing.
Tensor attend_by_products(const Pages& p, const Tensor& query, const Tensor& key, const Tensor& value,
                          const Tensor& bias) {
  const PagedAttentionSizes& s = p.sizes;
  const std::int64_t keys = key.size(2), groups = s.batch * s.key_heads;
  const Tensor scores = at::empty({groups, s.group() * s.tokens, keys}, query.options());
  scores.baddbmm_(query.reshape({groups, s.group() * s.tokens, s.size}),
                  key.reshape({groups, keys, s.size}).transpose(1, 2), /*beta=*/0, p.scale());
  if (s.softcap > 0) scores.div_(s.softcap).tanh_().mul_(s.softcap);
  const Tensor by_head = scores.view({s.batch, s.heads, s.tokens, keys});
  if (bias.defined()) by_head.add_(bias);
  if (const Tensor mask = mask_of(s, keys, query.options()); mask.defined()) by_head.add_(mask);
  if (s.padded) by_head.masked_fill_(is_padding(p, keys).view({s.batch, 1, 1, keys}), kOutOfSight);
  return at::bmm(at::_softmax(scores, 2, /*half_to_float=*/false), value.reshape({groups, keys, s.size}))
      .view({s.batch, s.heads, s.tokens, s.size});
}

Tensor attend_fused(const Pages& p, const Tensor& query, const Tensor& key, const Tensor& value) {
  const bool causal = p.sizes.causal();
  if (query.is_cuda())
    return std::get<0>(at::_scaled_dot_product_flash_attention(query, key, value, 0.0, causal,
                                                               /*return_debug_mask=*/false, p.scale()));
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, /*dropout=*/0.0, causal,
                                                                     /*mask=*/{}, p.scale()));
}

// With columns that put padding out of sight (PagedAttentionSizes::flagged).
Tensor attend_flagged(const Pages& p, const Tensor& query, const Tensor& key, const Tensor& value) {
  const PagedAttentionSizes wide = p.sizes.flagged(p.type);
  const std::int64_t size = p.sizes.size, keys = key.size(2);
  const Tensor out = at::empty_like(query, at::MemoryFormat::Contiguous), far = is_padding(p, keys);
  for (std::int64_t first = 0; first < p.sizes.batch; first += wide.batch) {
    const std::int64_t count = std::min(wide.batch, p.sizes.batch - first);
    const auto widened = [&](const Tensor& of) {
      const Tensor made = at::zeros({count, of.size(1), of.size(2), wide.size}, of.options());
      made.narrow(3, 0, size).copy_(of.narrow(0, first, count));
      return made;
    };
    const Tensor q = widened(query), k = widened(key), v = widened(value);
    q.select(3, size).fill_(1);
    k.select(3, size).masked_fill_(far.narrow(0, first, count).unsqueeze(1), kOutOfSight);
    out.narrow(0, first, count).copy_(attend_fused(p, q, k, v).narrow(3, 0, size));
  }
  return out;
}

Tensor attend(const Pages& p, const Tensor& bias) {
  const PagedAttentionSizes& s = p.sizes;
  const Tensor query = p.query(), key = p.seen(0), value = p.seen(1);
  const bool fused = !s.scored() && (query.is_cuda() ? s.is_flash(p.type) : s.causal() || !s.padded);
  if (!s.padded) return fused ? attend_fused(p, query, key, value) : attend_by_products(p, query, key, value, bias);
  const Tensor out = fused ? attend_flagged(p, query, key, value) : attend_by_products(p, query, key, value, bias);
  // What comes of padding has no say in anything, and follows from the run alone.
  if (s.causal()) out.masked_fill_(is_padding(p, s.tokens).view({s.batch, 1, s.tokens, 1}), 0);
  return out;
}

Tensor bias_of(const PagedAttentionSizes& s, const std::vector<Tensor>& in) {
  return s.biased ? in[s.values() - 1].narrow(2, 0, s.seen()) : Tensor();
}

void forward(Arguments& a) {
  const Pages p(a.call, a.in, a.out.size() > 1 ? a.out[1] : Tensor());
  if (!a.out[0].is_cuda() && p.sizes.by_rows(p.type)) {
    attend_rows(p.sizes, p.scale(), p.query_rows(), p.type, p.rows_seen(), p.padding(), a.out[0]);
    return;
  }
  p.of_rows(a.out[0], p.sizes.heads).copy_(attend(p, bias_of(p.sizes, a.in)));
}

std::vector<Tensor> reference(const ReferenceCall& r) {
  const PagedAttentionSizes sizes(r.call.how, r.call.shapes);
  Tensor begun;
  if (!sizes.fills) {
    const Shape& page = r.call.shapes.out[1];
    begun = at::zeros({page.dims.data(), page.dims.size()}, r.in[0].options().dtype(torch_type(page.type)));
  }
  const Pages p(r.call, r.in, begun);
  const Tensor out =
      sizes.scored() || sizes.padded
          ? attend(p, bias_of(sizes, r.in))
          : at::scaled_dot_product_attention(p.query(), p.seen(0), p.seen(1), /*mask=*/{}, /*dropout_p=*/0.0,
                                             sizes.causal(), p.scale(), /*enable_gqa=*/sizes.group() > 1);
  std::vector<Tensor> made = {out.transpose(1, 2).reshape({sizes.batch * sizes.tokens, sizes.heads * sizes.size})};
  if (begun.defined()) made.push_back(begun);
  return made;
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(paged_attention, forward, nullptr, reference)
