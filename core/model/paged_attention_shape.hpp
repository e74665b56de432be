// What a call of paged_attention is told: sizes, and where new keys and values go. Read by the primitive and by its
// body.
#pragma once

#include <algorithm>

#include "core/formats/weight_blocks.hpp"
#include "core/model/primitive.hpp"

namespace tandem {

// Keys and values of so many tokens of each text: as numbers, or as codes of a row's blocks.
inline Shape page_shape(std::int64_t rows, std::int64_t batch, std::int64_t width, DType type, std::int64_t bits) {
  if (bits == 0) return Shape({rows, 2, batch, width}, type);
  return Shape({rows, 2, batch, coded_bytes(bits, padded_to_blocks(bits, width))}, DType::U8);
}

struct PagedAttentionSizes {
  PagedAttentionSizes(const Attributes& how, const CallShapes& s)
      : heads(how.integer("heads")),
        key_heads(how.integer("key_heads", heads)),
        tokens(how.integer("tokens")),
        position(how.integer("position")),
        rows(how.integer("rows")),
        window(how.integer("window", 0)),
        bits(how.integer("bits", 0)),
        eager(how.integer("eager", 0) != 0),
        fused_input(how.integer("fused_input", 0) != 0),
        fills(how.integer("fills", 0) != 0),
        alibi(how.integer("alibi", 0) != 0),
        biased(how.integer("bias", 0) != 0),
        padded(how.integer("padded", 0) != 0),
        scale(how.has("scale") ? how.number("scale") : 0),
        softcap(how.has("softcap") ? how.number("softcap") : 0),
        batch(s.in[0].rows() / tokens),
        size(s.in[0].columns() / (fused_input ? 3 * heads : heads)) {}
  // Inputs before the pages: queries, keys and values, side by side or one each, and what is added to scores; then each
  // text's padding.
  std::size_t values() const { return (fused_input ? 1 : 3) + (biased ? 1 : 0); }
  std::size_t first_page() const { return values() + (padded ? 1 : 0); }
  std::int64_t key_width() const { return key_heads * size; }
  std::int64_t padded_width() const { return padded_to_blocks(bits, key_width()); }  // of what becomes codes
  std::int64_t keys() const { return position + tokens; }
  // Those that a query sees: a single token's may be fewer.
  std::int64_t seen() const { return window > 0 && tokens == 1 ? std::min(window, keys()) : keys(); }
  std::int64_t group() const { return heads / key_heads; }
  bool causal() const { return tokens > 1; }
  // Of new tokens whose keys and values become codes: they are in fp32 meanwhile, in 16 MiB where one token allows.
  std::int64_t tokens_at_once() const {
    constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;
    return std::clamp<std::int64_t>(kMostBytes / wide_bytes(1), 1, tokens);
  }
  // Keys and values of so many tokens of each text in fp32, in whole blocks of codes.
  std::int64_t wide_bytes(std::int64_t of_tokens) const {
    return of_tokens * 2 * batch * padded_width() * size_of(DType::F32);
  }
  // Something is done to scores that no fused kernel does: they are in memory, between two products.
  bool scored() const { return alibi || biased || softcap > 0 || hides_in_prompt(); }
  // Of a prompt longer than the window.
  bool hides_in_prompt() const { return window > 0 && tokens > window; }
  std::int64_t scores() const { return batch * heads * tokens * seen(); }
  // Whether the CPU reads keys and values where they lie.
  bool by_rows(DType type) const { return tokens == 1 && !scored() && type != DType::F64; }
  // Of keys, that a thread takes at a time: a piece of a row that is long enough to be read at the memory's rate,
  // unless threads would have nothing to do.
  std::int64_t heads_together(DType type, std::int64_t threads) const {
    constexpr std::int64_t kLongBytes = 8192;
    std::int64_t heads_at_once = std::clamp<std::int64_t>(kLongBytes / (size * size_of(type)), 1, key_heads);
    while (heads_at_once > 1 && batch * ((key_heads + heads_at_once - 1) / heads_at_once) < 2 * threads)
      heads_at_once = (heads_at_once + 1) / 2;
    return heads_at_once;
  }
  // Of all threads together, however few of `threads` there are.
  std::int64_t most_heads(DType type, std::int64_t threads) const {
    std::int64_t most = 0;
    for (std::int64_t n = 1; n <= threads; ++n) most = std::max(most, n * heads_together(type, n));
    return most;
  }
  // Whether a GPU's FlashAttention takes it; what it does not is two products, too.
  bool is_flash(DType type) const {
    if (scored() || (padded && !causal())) return false;
    return type != DType::F32 && size % 8 == 0 && size + (padded ? kFlagColumns : 0) <= 256;
  }
  // Fused kernels of a causal prompt take no other mask. Each key gets a column more that says how far off it is, and
  // each query one that is 1, so that scores of padding are out of sight; and more of them, as many as kernels want.
  static constexpr std::int64_t kFlagColumns = 8;
  // What a fused kernel is given of such prompts at a time: copies of some texts, in 32 MiB where one text allows.
  PagedAttentionSizes flagged(DType type) const {
    constexpr std::int64_t kMostBytes = std::int64_t{32} << 20;
    PagedAttentionSizes of = *this;
    of.size += kFlagColumns, of.batch = 1;
    of.batch = std::clamp<std::int64_t>(kMostBytes / of.copied(type), 1, batch);
    return of;
  }
  // Bytes of queries, keys, values and what comes of them.
  std::int64_t copied(DType type) const { return 2 * (heads + key_heads) * batch * tokens * size * size_of(type); }

  std::int64_t heads, key_heads, tokens, position, rows, window;
  std::int64_t bits;  // of the pages' codes; 0: they are numbers
  bool eager;         // codes are made and read by a kernel for each operation
  bool fused_input;   // queries, keys and values are columns of one input
  bool fills;         // the last page is there, and gets the new rows: else it begins with them
  bool alibi;         // a score falls with the distance, by head
  bool biased;        // an input before the pages, [heads, tokens, seen or more], is added to scores
  bool padded;        // the input before the pages, [batch], says how many of a text's first keys nobody sees
  double scale;       // 0: one over the root of size
  double softcap;     // scores are cap tanh(score / cap); 0: as they are
  std::int64_t batch, size;
};

}  // namespace tandem
