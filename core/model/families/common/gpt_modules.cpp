#include "core/model/families/common/gpt_modules.hpp"

#include "core/base/check.hpp"
#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/families/common/layers.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr const char* kGelu = "gelu_tanh";  // GPT-2's approximation

class Tiles {
 public:
  Tiles(NetworkBuilder& n, const TransformerSizes& s, std::int64_t tiles) : n_(n), s_(s), tiles_(tiles) {}
  Signal half(const std::string& name, const Signal& x, bool attends) {
    Signal sum = x, norm;
    for (std::int64_t i = 0; i < tiles_; ++i) {
      const auto program = [&](ModuleScope& m) {
        const LocalId so_far = m.in("sum", sum);
        const LocalId normed = i == 0 ? m.layer_norm(attends ? "ln1" : "ln2", so_far, kEpsilon) : m.in("norm", norm);
        const LocalId part = m.linear(attends ? "projection" : "down", inner(m, normed, attends), s_.hidden, i == 0);
        m.output(m.add("output", so_far, part));
        if (i == 0) m.output(normed);
      };
      sum = n_.module(indexed(name, i), attends ? "attention_tile" : "feed_forward_tile", program,
                      /*recomputable=*/true);
      if (i == 0) norm = n_.output(1);
    }
    return sum;
  }

 private:
  LocalId inner(ModuleScope& m, LocalId normed, bool attends) const {
    if (!attends) return m.activation("gelu", m.linear("up", normed, s_.width() / tiles_), kGelu);
    const LocalId qkv = m.linear("qkv", normed, 3 * s_.hidden / tiles_);
    return m.attention("attention", qkv, {s_.heads / tiles_, s_.sequence, /*causal=*/true, s_.fused});
  }
  NetworkBuilder& n_;
  const TransformerSizes& s_;
  std::int64_t tiles_;
};

LocalId general_attention(ModuleBuilder& m, const GptSizes& s, LocalId x) {
  const std::int64_t keys = s.key_heads > 0 ? s.key_heads : s.heads, size = s.hidden / s.heads;
  const auto turned = [&](const std::string& name, LocalId rows, std::int64_t heads) {
    if (s.positions != GptPositions::Rotary) return rows;
    return m.call(name, "rotary", {rows},
                  {{"heads", heads},
                   {"sequence", s.sequence},
                   {"dims", s.rotary_dims > 0 ? s.rotary_dims : size},
                   {"theta", 10000.0},
                   {"interleaved", std::int64_t{s.rotary_neighbours}}});
  };
  const LocalId q = turned("turned_q", m.linear("q", x, s.hidden, s.attention_bias), s.heads);
  const LocalId k = turned("turned_k", m.linear("k", x, keys * size, s.attention_bias), keys);
  return attend(m, "attention", q, k, m.linear("v", x, keys * size, s.attention_bias),
                {.heads = s.heads,
                 .key_heads = keys,
                 .queries = s.sequence,
                 .causal = true,
                 .alibi = s.positions == GptPositions::Alibi});
}

LocalId plain_attention(ModuleBuilder& m, const GptSizes& s, LocalId x) {
  const LocalId qkv = m.linear("qkv", x, 3 * s.hidden);
  if (s.capacity == 0) return m.attention("attention", qkv, {s.heads, s.sequence, /*causal=*/true, s.fused});
  const LocalId cache = m.carried("kv_cache", Shape({2, s.capacity, s.hidden}, m.type()));
  return m.cached_attention("attention", qkv, cache, s.heads, s.position);
}

LocalId attention_half(ModuleBuilder& m, const GptSizes& s, LocalId norm) {
  CHECK(s.capacity == 0 || s.has_plain_attention(), "only plain attention has a cache", s.capacity);
  const LocalId attention = s.has_plain_attention() ? plain_attention(m, s, norm) : general_attention(m, s, norm);
  return dropped(m, "attention_dropout", m.linear("projection", attention, s.hidden, s.attention_bias), s.dropout, 0);
}

LocalId feed_forward_half(ModuleBuilder& m, const GptSizes& s, LocalId norm) {
  const LocalId up = m.linear("up", norm, s.width(), s.feed_forward_bias);
  const LocalId down = m.linear("down", m.activation("gelu", up, s.activation), s.hidden, s.feed_forward_bias);
  return dropped(m, "feed_forward_dropout", down, s.dropout, 1);
}

}  // namespace

const std::vector<FamilyKey>& gpt_keys() {
  static const std::vector<FamilyKey> kKeys = {
      word_key("activation", {"gelu_tanh", "gelu", "relu", "silu"}, "Of the feed-forward layer (OPT: relu)."),
      word_key("positions", {"learned", "rotary", "alibi"},
               "learned: a row for each place; rotary: queries and keys turn (GPT-J, Falcon); alibi: scores fall with "
               "the distance (BLOOM)."),
      size_key("rotary_dims", {0, 1 << 16}, 0, "Numbers of a head that turn; 0: all."),
      word_key("rotary_pairs", {"halves", "neighbours"},
               "Numbers that turn together: i and i + dims / 2, or 2i and 2i + 1 (GPT-J)."),
      size_key("key_heads", {0, 1 << 16}, 0, "Heads of keys and values, which groups of heads share; 0: as many."),
      word_key("residual", {"sequential", "parallel", "parallel_two_norms"},
               "Whether the feed-forward layer reads what attention made, or both read the same, by one norm (GPT-J, "
               "Falcon 7B) or by one each (Falcon 40B)."),
      flag_key("attention_biases", true, "Whether the linear layers of attention have biases."),
      flag_key("feed_forward_biases", true, "Whether the linear layers of the feed-forward layer have biases."),
      flag_key("embedding_norm", false, "Whether embeddings are normed (BLOOM)."),
      flag_key("output_bias", false, "Whether the output layer has a bias (GPT-J).")};
  return kKeys;
}

GptSizes::GptSizes(const WorkloadOptions& w) : TransformerSizes(transformer_sizes(w)) {
  const KeyValues& k = w.keys;
  const std::string &where = k.text("positions"), &order = k.text("residual");
  if (where != "learned") positions = where == "rotary" ? GptPositions::Rotary : GptPositions::Alibi;
  if (order != "sequential") residual = order == "parallel" ? GptResidual::Parallel : GptResidual::ParallelTwoNorms;
  key_heads = k.integer("key_heads") == heads ? 0 : k.integer("key_heads");
  if (key_heads > 0) require_divisor("key_heads", key_heads, "heads", heads);
  rotary_dims = k.integer("rotary_dims"), rotary_neighbours = k.text("rotary_pairs") == "neighbours";
  const std::int64_t size = hidden / heads, turned = rotary_dims > 0 ? rotary_dims : size;
  require_option(positions != GptPositions::Rotary || (turned % 2 == 0 && turned <= size), "rotary_dims, hidden, heads",
                 std::to_string(turned) + " numbers of a head cannot turn in pairs",
                 "allowed: an even number of at most hidden / heads");
  attention_bias = k.flag("attention_biases"), feed_forward_bias = k.flag("feed_forward_biases");
  embedding_norm = k.flag("embedding_norm"), output_bias = k.flag("output_bias");
  activation = k.text("activation"), dropout = k.number("dropout");
  require_option(fused || has_plain_attention(), "attention, positions, key_heads, attention_biases",
                 "unfused attention has learned positions, as many heads of keys, and biases", "allowed: fused");
}

bool GptSizes::has_plain_blocks() const {
  return has_plain_attention() && residual == GptResidual::Sequential && feed_forward_bias && dropout == 0 &&
         activation == kGelu;
}

LocalId dropped(ModuleBuilder& m, const std::string& name, LocalId x, double rate, std::int64_t stream) {
  return rate > 0 ? m.call(name, "dropout", {x}, {{"rate", rate}, {"stream", stream}}) : x;
}

Signal gpt_embedding(NetworkBuilder& n, const GptSizes& s, const Signal& tokens) {
  return n.module("embedding", "embedding", [&](ModuleScope& m) {
    LocalId x = m.embedding("wte", m.in("tokens", tokens), s.vocabulary, s.hidden, s.embedding_padding());
    if (s.positions == GptPositions::Learned) x = m.positions("wpe", x, s.sequence, s.position, s.places);
    if (s.embedding_norm) x = m.layer_norm("ln", x, kEpsilon);
    m.output(dropped(m, "dropout", x, s.dropout, 0));
  });
}

Signal gpt_block(NetworkBuilder& n, const GptSizes& s, const std::string& name, const Signal& input) {
  const auto program = [&](ModuleScope& m) {
    const LocalId x = m.in("input", input), norm = m.layer_norm("ln1", x, kEpsilon);
    const LocalId middle = m.add("middle", x, attention_half(m, s, norm));
    LocalId second = norm;
    if (s.residual != GptResidual::Parallel)
      second = m.layer_norm("ln2", s.residual == GptResidual::Sequential ? middle : x, kEpsilon);
    m.output(m.add("output", middle, feed_forward_half(m, s, second)));
    m.weights_first({"ln1", "ln2"});
  };
  return n.module(name, "block", program, /*recomputable=*/true);
}

Signal gpt_blocks(NetworkBuilder& n, const GptSizes& s, const Signal& input) {
  Signal x = gpt_block(n, s, "block0", input);
  for (std::int64_t i = 1; i < s.layers; ++i) x = n.again(indexed("block", i), x);
  return x;
}

Signal gpt_tiled_block(NetworkBuilder& n, const TransformerSizes& s, std::int64_t tiles, const std::string& name,
                       const Signal& x) {
  Tiles t(n, s, tiles);
  return t.half(name + "_feed_forward", t.half(name + "_attention", x, true), false);
}

namespace {

LocalId shared_output(ModuleScope& m, const NetworkBuilder& n, const GptSizes& s) {
  return s.tied ? m.in("output.weight", n.weight("embedding", "wte")) : kNone;
}

}  // namespace

void gpt_head(NetworkBuilder& n, const GptSizes& s, const Signal& x, const Signal& targets) {
  n.module("head", s.loss_tiles > 1 ? "tiled_head" : "head", [&](ModuleScope& m) {
    const LocalId shared = shared_output(m, n, s);
    const LocalId norm = m.layer_norm("ln_f", m.in("input", x), kEpsilon);
    m.output(language_loss(m, {s.vocabulary, s.vocabulary_padding, s.loss_tiles}, norm, m.in("targets", targets),
                           shared, s.output_bias));
  });
}

Signal gpt_next_token(NetworkBuilder& n, const GptSizes& s, const Signal& x) {
  return n.module("head", "head", [&](ModuleScope& m) {
    const LocalId shared = shared_output(m, n, s);
    LocalId last = m.in("input", x);
    if (s.sequence > 1)
      last = m.call("last", "select_token", {last}, {{"sequence", s.sequence}, {"index", s.sequence - 1}});
    const LocalId norm = m.layer_norm("ln_f", last, kEpsilon);
    const LocalId logits = language_logits(m, {s.vocabulary, s.vocabulary_padding}, norm, shared, s.output_bias);
    m.output(m.likeliest("next", logits, s.vocabulary_padding));
  });
}

}  // namespace tandem
