// Attention of `tokens` new tokens of each of a batch of texts to all of theirs so far, whose keys and values lie in
// pages [rows, 2, batch, key_heads size], the oldest first. Inputs: queries [batch tokens, heads size], keys and values
// (or all three as columns of one, `fused_input`), then the pages. The new ones go into the last page: where it
// `fills`, it is the last input, which is updated; else it begins, and is the second output. Several new tokens are a
// text's first ones (position 0), and see themselves and those before them. `alibi`, `softcap`, `window` and `bias` (an
// input before the pages, [heads, tokens, at least as many as there are keys]) are those of qkv_attention. `padded`:
// the last input before the pages, [batch] int64, says how many tokens each text's prompt has before its own ones:
// these see none of them, and of those comes 0. There is no backward.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/eager_codes.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/paged_attention_shape.hpp"

namespace tandem {
namespace {

using Sizes = PagedAttentionSizes;

class PagedAttention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Sizes a(how, s);
    CHECK(s.in.size() >= a.first_page() + (a.fills ? 1 : 0), "an input is missing", s.in.size());
    CHECK(a.heads % a.key_heads == 0 && a.batch * a.tokens == s.in[0].rows(), a.heads, a.key_heads, a.tokens);
    CHECK(a.position >= 0 && (a.tokens == 1 || a.position == 0), "only a text's first tokens come at once", a.position);
    CHECK(!a.padded || s.in[a.values()] == Shape({a.batch}, DType::I64), "each text has a padding", a.batch);
    if (a.biased) {
      const auto& bias = s.in[a.values() - 1].dims;
      CHECK(bias.size() == 3 && bias[0] == a.heads && bias[1] == a.tokens && bias[2] >= a.seen(), a.heads, a.seen());
    }
    CHECK(!a.biased || a.window == 0, "a bias is of all keys", a.window);
    std::int64_t rows = 0;
    for (std::size_t i = a.first_page(); i < s.in.size(); ++i) {
      const auto& dims = s.in[i].dims;
      CHECK(dims.size() == 4 && s.in[i] == page_shape(dims[0], a.batch, a.key_width(), s.in[0].type, a.bits), i);
      rows += dims[0];
    }
    const std::int64_t last = a.fills ? s.in.back().dims[0] : 0;
    CHECK(a.position <= rows && (!a.fills || a.position > rows - last), "pages before hold all tokens", a.position);
    CHECK(a.keys() <= rows + (a.fills ? 0 : a.rows), "the last page is full", a.keys(), rows);
    s.out = {Shape({a.batch * a.tokens, a.heads * a.size}, s.in[0].type)};
    if (!a.fills) s.out.push_back(page_shape(a.rows, a.batch, a.key_width(), s.in[0].type, a.bits));
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    CHECK(direction == Direction::Forward, "attention to pages has no backward");
    const Sizes a(how, s);
    keep(a, s, to);
    if (a.scored()) return by_products(a, s, to);
    if (a.tokens > 1) {
      if (a.padded) to.push_back(memory_kernel(2 * a.copied(s.in[0].type)));
      const std::int64_t size = a.size + (a.padded ? Sizes::kFlagColumns : 0);
      return to.push_back(attention_forward(a.batch * a.heads, a.tokens, a.keys(), size, s.in[0].type, a.causal()));
    }
    bring_together(a, s, to);
    // Heads that share keys are as many queries.
    to.push_back(attention_forward(a.batch * a.key_heads, a.group(), a.seen(), a.size, s.in[0].type, false));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const Sizes a(how, s);
    const std::int64_t type = size_of(s.in[0].type), number = size_of(DType::F32);
    const bool in_place = a.tokens > 1 || (!where.gpu && a.by_rows(s.in[0].type));
    const std::int64_t row = s.out[0].bytes(), together = in_place ? 0 : rows_bytes(a, s, a.seen()) / 2;
    if (a.bits > 0) meter.touch(a.wide_bytes(a.tokens_at_once()));
    if (a.bits > 0)
      meter.take(a.tokens > 1 ? 0 : a.wide_bytes(a.seen()) / size_of(DType::F32) * type);
    else
      for (const std::int64_t bytes : {together, together}) meter.take(bytes);
    const std::int64_t sums = a.batch * a.heads * (a.tokens + 31) * number;
    // What the fused kernels are given at a time.
    const Sizes given = a.padded && a.causal() ? a.flagged(s.in[0].type) : a;
    const std::int64_t copies = given.size > a.size ? given.copied(s.in[0].type) + padding_bytes(a) : 0;
    if (where.gpu && a.is_flash(s.in[0].type))
      return meter.touch_all({row, copies, sums, sums,
                              std::max(split_bytes(given, given.batch), split_bytes(given, a.batch % given.batch)),
                              kNumberBytes, kNumberBytes, kNumberBytes});
    if (a.scored()) {
      const std::int64_t scores = a.scores() * type, keys = rows_bytes(a, s, a.seen()) / 2;
      const std::int64_t distances = a.alibi ? 2 * a.tokens * a.seen() * number : 0;
      return meter.touch_all(
          {row, keys, keys, scores, scores, mask_bytes(a, s), distances, row,
           cpu_product_bytes(a.batch * a.heads * a.tokens, a.seen(), a.size, s.in[0].type) + 2 * keys});
    }
    if (where.gpu) {  // queries, keys and values of each head; scores, shares and a mask; and what comes of them
      // A prompt's own, and what came of codes, which does not lie in a row.
      const std::int64_t own = a.tokens > 1 || a.bits > 0 ? rows_bytes(a, s, a.seen()) / 2 : 0;
      const std::int64_t scores = a.batch * a.heads * a.tokens * a.seen() * type;
      return meter.touch_all({row, own, own, scores, scores, mask_bytes(a, s), row});
    }
    const std::int64_t threads = where.threads;
    if (a.by_rows(s.in[0].type)) {
      return meter.touch(a.most_heads(s.in[0].type, threads) * a.group() * (a.seen() + 2 * a.size) * number);
    }
    const std::int64_t q = cpu_query_split(a.tokens), k = cpu_key_split(a.seen());
    const std::int64_t rounded = s.in[0].type == DType::F32 ? 0 : threads * q * k * type;
    const std::int64_t packed =
        s.in[0].type == DType::F32 ? 0 : cpu_tile_bytes(threads) + rows_bytes(a, s, a.seen()) * a.group();
    meter.touch_all({row, copies, sums, threads * (q * k + 2 * q + q * given.size) * number, rounded, packed});
  }
  // Of what it fills, the place differs: no bit says it.
  Bits updates() const override { return 0; }

 private:
  // The new tokens' go into the page.
  static void keep(const Sizes& a, const CallShapes& s, std::vector<Kernel>& to) {
    const std::int64_t bytes = rows_bytes(a, s, a.tokens);
    if (a.bits > 0 && a.eager) return append(to, eager_kernels(kEagerEncoding, bytes / size_of(s.in[0].type)));
    to.push_back(memory_kernel(bytes + page_bytes(a, s, a.tokens)));
  }
  static void bring_together(const Sizes& a, const CallShapes& s, std::vector<Kernel>& to) {
    const std::int64_t bytes = rows_bytes(a, s, a.seen());
    if (a.bits > 0 && a.eager) return append(to, eager_kernels(kEagerDecoding, bytes / size_of(s.in[0].type)));
    to.push_back(memory_kernel(bytes + page_bytes(a, s, a.seen())));
  }
  // What is added to scores for positions, in whole blocks of keys, and which are hidden.
  static std::int64_t mask_bytes(const Sizes& a, const CallShapes& s) {
    if (!a.alibi && !a.causal()) return padding_bytes(a);
    const std::int64_t rows = a.alibi ? a.heads : 1;
    return padding_bytes(a) + rows * a.tokens * (a.seen() + 15) * size_of(s.in[0].type) + 2 * a.tokens * a.seen();
  }
  // Which keys are padding, and how that comes about.
  static std::int64_t padding_bytes(const Sizes& a) {
    return a.padded ? (2 * size_of(DType::I64) + a.batch) * a.seen() + 4 * kNumberBytes : 0;
  }
  static std::int64_t split_bytes(const Sizes& given, std::int64_t batch) {
    return batch == 0 ? 0 : gpu_split_keys_bytes(batch * given.heads, given.tokens, given.seen(), given.size);
  }
  static void by_products(const Sizes& a, const CallShapes& s, std::vector<Kernel>& to) {
    const std::int64_t scores = a.scores() * size_of(s.in[0].type), groups = a.batch * a.key_heads;
    if (a.tokens == 1) bring_together(a, s, to);
    to.push_back(
        lying_along(batched_gemm(groups, a.group() * a.tokens, a.seen(), a.size, s.in[0].type), a.size, a.size));
    const int over_scores =
        (a.softcap > 0 ? 3 : 0) + (a.biased ? 1 : 0) + (a.padded ? 1 : 0) + (a.alibi || a.causal() ? 2 : 0) + 1;
    to.insert(to.end(), static_cast<std::size_t>(over_scores), memory_kernel(2 * scores));
    to.push_back(
        lying_along(batched_gemm(groups, a.group() * a.tokens, a.size, a.seen(), s.in[0].type), a.seen(), a.size));
  }
  static std::int64_t page_bytes(const Sizes& a, const CallShapes& s, std::int64_t tokens) {
    return page_shape(tokens, a.batch, a.key_width(), s.in[0].type, a.bits).bytes();
  }
  // Keys and values of so many tokens of each text.
  static std::int64_t rows_bytes(const Sizes& a, const CallShapes& s, std::int64_t tokens) {
    return 2 * a.batch * tokens * a.key_width() * size_of(s.in[0].type);
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(paged_attention, PagedAttention)
