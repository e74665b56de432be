#include "core/model/families/common/decoder.hpp"

#include <algorithm>
#include <cmath>

#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/families/common/layers.hpp"

namespace tandem {

const std::vector<FamilyKey>& decoder_keys() {
  static const std::vector<FamilyKey> kKeys = {
      layers_key(),
      size_key("hidden", {1, 1 << 20}, "Width of a layer."),
      size_key("heads", {1, 1 << 16}, "Attention heads."),
      size_key("key_heads", {0, 1 << 16}, 0, "Heads of keys and values, which groups of heads share; 0: as many."),
      size_key("head_size", {0, 1 << 16}, 0, "Width of a head; 0: hidden / heads."),
      size_key("feed_forward", {1, 1 << 22}, "Width of the feed-forward layer."),
      vocabulary_key(),
      vocabulary_multiple_key(),
      sequence_key(),
      word_key("activation", {"silu", "gelu_tanh", "gelu"}, "Of the gate of the feed-forward layer."),
      number_key("theta", 1, 1e12, 10000, "Base of the rotary positions' wavelengths."),
      number_key("epsilon", 0, 1, 1e-5, "Of the norms."),
      flag_key("qkv_bias", false, "Whether queries, keys and values have biases (Qwen 2.5)."),
      size_key("window", {0, kMostSize}, 0, "Positions that a token sees, itself among them; 0: all before it."),
      flag_key("alternate_windows", false, "Whether only blocks 0, 2, 4, ... have the window (Gemma 2)."),
      number_key("query_scale", 0, 1e6, 0, "Attention scores are divided by its root; 0: head_size (Gemma 2)."),
      number_key("attention_softcap", 0, 1e6, 0, "Attention scores stay below; 0: no cap (Gemma 2). Unfused, then."),
      number_key("output_softcap", 0, 1e6, 0, "Logits stay below; 0: no cap (Gemma 2)."),
      flag_key("post_norms", false, "Whether what a half of a block adds is normed, too (Gemma 2)."),
      flag_key("scaled_embedding", false, "Whether embeddings are multiplied by the root of hidden (Gemma)."),
      flag_key("unit_offset", false, "Whether norms multiply by 1 + weight (Gemma)."),
      flag_key("tied_embedding", false, "Whether the output layer shares the embedding's parameters."),
      loss_tiles_key()};
  return kKeys;
}

DecoderSizes::DecoderSizes(const WorkloadOptions& w) {
  const KeyValues& k = w.keys;
  batch = w.batch, micro_batches = w.micro_batches, type = w.precision;
  layers = k.integer("layers"), hidden = k.integer("hidden"), heads = k.integer("heads");
  vocabulary = k.integer("vocabulary"), sequence = k.integer("sequence"), feed_forward = k.integer("feed_forward");
  key_heads = k.integer("key_heads") > 0 ? k.integer("key_heads") : heads;
  require_divisor("key_heads", key_heads, "heads", heads);
  head_size = k.integer("head_size");
  if (head_size == 0) require_divisor("heads", heads, "hidden", hidden), head_size = hidden / heads;
  require_option(head_size % 2 == 0, "head_size, hidden, heads",
                 "rotary positions turn pairs, and a head has " + std::to_string(head_size) + " numbers",
                 "allowed: an even width of a head");
  theta = k.number("theta"), epsilon = k.number("epsilon"), window = k.integer("window");
  attention_softcap = k.number("attention_softcap"), output_softcap = k.number("output_softcap");
  query_scale = k.number("query_scale"), gate = k.text("activation");
  qkv_bias = k.flag("qkv_bias"), alternates = k.flag("alternate_windows"), post_norms = k.flag("post_norms");
  scales_embedding = k.flag("scaled_embedding"), unit_offset = k.flag("unit_offset"), tied = k.flag("tied_embedding");
  loss_tiles = k.integer("loss_tiles");
  vocabulary_padding = tandem::vocabulary_padding(k);
  require_option(loss_tiles == 1 || output_softcap == 0, "loss_tiles, output_softcap",
                 "a tiled loss has no cap of its logits", "allowed: loss_tiles 1, or output_softcap 0");
  require_tiles(*this);
  require_product("hidden, feed_forward", {hidden, feed_forward});
  require_product("hidden, heads, head_size", {hidden, heads, head_size});
  require_product("batch, sequence, hidden, feed_forward", {tokens(), std::max(feed_forward, 4 * hidden)});
  require_product("batch, sequence, heads, head_size", {tokens(), heads, head_size});
  if (attention_softcap > 0) require_product("batch, heads, sequence", {batch, heads, sequence, sequence});
  require_product("batch, sequence, vocabulary", {tokens(), vocabulary});
  require_product("vocabulary, hidden", {vocabulary, hidden});
}

Signal decoder_embedding(NetworkBuilder& n, const DecoderSizes& s, const Signal& tokens, const std::string& name) {
  return n.module(name, name, [&](ModuleScope& m) {
    const LocalId rows = m.embedding("tokens", m.in("tokens", tokens), s.vocabulary, s.hidden, s.embedding_padding());
    const double factor = std::sqrt(static_cast<double>(s.hidden));
    m.output(s.scales_embedding ? m.call("scaled", "scale", {rows}, {{"factor", factor}}) : rows);
  });
}

namespace {

LocalId turned(ModuleBuilder& m, const DecoderSizes& s, const std::string& name, LocalId x, std::int64_t heads) {
  return m.call(name, "rotary", {x}, {{"heads", heads}, {"sequence", s.sequence}, {"theta", s.theta}});
}

LocalId attention(ModuleBuilder& m, const DecoderSizes& s, std::int64_t index, LocalId norm) {
  const std::int64_t inner = s.heads * s.head_size, key_width = s.key_heads * s.head_size;
  const LocalId q = turned(m, s, "turned_q", m.linear("q", norm, inner, s.qkv_bias), s.heads);
  const LocalId k = turned(m, s, "turned_k", m.linear("k", norm, key_width, s.qkv_bias), s.key_heads);
  const LocalId v = m.linear("v", norm, key_width, s.qkv_bias);
  const bool sees_window = s.window > 0 && s.window < s.sequence && (!s.alternates || index % 2 == 0);
  const LocalId attended = attend(m, "attention", q, k, v,
                                  {.heads = s.heads,
                                   .key_heads = s.key_heads,
                                   .queries = s.sequence,
                                   .causal = true,
                                   .window = sees_window ? s.window : 0,
                                   .scale = s.query_scale > 0 ? 1 / std::sqrt(s.query_scale) : 0,
                                   .softcap = s.attention_softcap});
  return m.linear("output", attended, s.hidden, false);
}

}  // namespace

Signal decoder_block(NetworkBuilder& n, const DecoderSizes& s, std::int64_t index, const Signal& input,
                     const SecondHalf& second, const DecoderBlockOptions& options) {
  const auto program = [&](ModuleScope& m) {
    const auto norm = [&](const char* name, LocalId x) { return rms_norm(m, name, x, s.epsilon, s.unit_offset); };
    const auto added = [&](const char* name, LocalId x) { return s.post_norms ? norm(name, x) : x; };
    const LocalId x = m.in("input", input);
    const LocalId first = norm("attention_norm", x), attended = attention(m, s, index, first);
    if (s.parallel) return m.output(m.add("sum", x, m.add("halves", attended, second(m, first))));
    LocalId middle = m.add("middle", x, added("attention_post_norm", attended));
    if (options.between) middle = m.add("between_sum", middle, options.between(m, middle));
    const LocalId made = second(m, norm("feed_forward_norm", middle));
    m.output(m.add("sum", middle, added("feed_forward_post_norm", made)));
  };
  return n.module(indexed(options.kind, index), options.kind, program, /*recomputable=*/true);
}

void decoder_head(NetworkBuilder& n, const DecoderSizes& s, const Signal& x, const Signal& targets,
                  const std::string& embedding) {
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId shared = s.tied ? m.in("output.weight", n.weight(embedding, "tokens")) : kNone;
    const LocalId norm = rms_norm(m, "norm", m.in("input", x), s.epsilon, s.unit_offset);
    m.output(language_loss(m, {s.vocabulary, s.vocabulary_padding, s.loss_tiles, s.output_softcap}, norm,
                           m.in("targets", targets), shared,
                           /*bias=*/false));
  });
}

}  // namespace tandem
