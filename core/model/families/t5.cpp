// T5 (Raffel et al. 2020, arXiv 1910.10683): encoder and decoder with relative positions, which all blocks of a stack
// share, RMS norms and no biases; version 1.1 gates its feed-forward layers and has an output layer of its own.
#include <algorithm>
#include <cmath>

#include "core/model/families/common/family.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/families/common/transformer.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-6;

const FamilyKeys kKeys = {
    {layers_key(), size_key("decoder_layers", {0, kMostLayers}, 0, "Blocks of the decoder; 0: as many."),
     size_key("hidden", {1, 1 << 20}, "Width of a layer."), size_key("heads", {1, 1 << 16}, "Attention heads."),
     size_key("head_size", {0, 1 << 16}, 0, "Width of a head; 0: hidden / heads."),
     size_key("feed_forward", {1, 1 << 22}, "Width of the feed-forward layer."), vocabulary_key(),
     vocabulary_multiple_key(), sequence_key(),
     size_key("target_sequence", {0, kMostSize}, 0, "Tokens of a target; 0: as of a sample."),
     size_key("buckets", {4, 4096}, 32, "Distances that positions tell apart."),
     size_key("most_distance", {4, kMostSize}, 128, "Farther keys are all alike."),
     flag_key("gated", false, "Whether feed-forward layers are gated, by gelu (version 1.1); else relu."),
     flag_key("tied_embedding", true, "Whether the output layer shares the embedding's parameters.")},
    recomputing_keys(),
    {},
    {{"layers", 2},
     {"hidden", 48},
     {"heads", 3},
     {"feed_forward", 88},
     {"vocabulary", 301},
     {"sequence", 37},
     {"target_sequence", 21},
     {"buckets", 8},
     {"most_distance", 20}}};

struct Sizes {
  explicit Sizes(const WorkloadOptions& w)
      : keys(w.keys),
        batch(w.batch),
        hidden(keys.integer("hidden")),
        heads(keys.integer("heads")),
        width(keys.integer("feed_forward")),
        vocabulary(keys.integer("vocabulary")),
        padding(vocabulary_padding(keys)),
        sources(keys.integer("sequence")),
        targets(keys.integer("target_sequence")),
        gated(keys.flag("gated")),
        tied(keys.flag("tied_embedding")) {
    const std::int64_t size = keys.integer("head_size");
    if (targets == 0) targets = sources;
    if (size == 0) require_divisor("heads", heads, "hidden", hidden);
    inner = size == 0 ? hidden : heads * size;
    require_option(keys.integer("most_distance") > keys.integer("buckets") / 2, "most_distance, buckets",
                   "is within the distances that are told apart", "allowed: more than half of buckets");
    const std::int64_t longest = std::max(sources, targets);
    require_product("hidden, feed_forward", {hidden, std::max(width, inner)});
    require_product("batch, sequence, feed_forward", {batch, longest, std::max(width, 4 * hidden)});
    require_product("batch, heads, sequence", {batch, heads, longest, longest});
    require_product("vocabulary, hidden", {vocabulary, hidden});
    require_product("batch, target_sequence, vocabulary", {batch, targets, vocabulary + padding});
  }
  const KeyValues& keys;
  std::int64_t batch, hidden, heads, width, vocabulary, padding, sources, targets, inner = 0;
  bool gated, tied;
};

constexpr ProjectionBiases kNoBiases = {.q = false, .k = false, .v = false, .out = false};

// Scores are not scaled.
LocalId attention(ModuleBuilder& m, const std::string& name, const Sizes& s, LocalId x, LocalId context,
                  AttendOptions options, LocalId bias) {
  options.heads = s.heads, options.scale = 1;
  return attention_of(m, name, x, context, s.inner, kNoBiases, options, bias);
}

// Numbers that are added to the scores of all blocks of a stack.
Signal relative_positions(NetworkBuilder& n, const std::string& name, const Sizes& s, std::int64_t tokens,
                          bool bidirectional) {
  return n.module(name, name, [&](ModuleScope& m) {
    m.output(m.call("bias", "relative_bias", {},
                    {{"heads", s.heads},
                     {"queries", tokens},
                     {"keys", tokens},
                     {"buckets", s.keys.integer("buckets")},
                     {"most", s.keys.integer("most_distance")},
                     {"bidirectional", std::int64_t{bidirectional}}}));
  });
}

// Of a stack; `memory`: the encoder's result, for the decoder.
Signal block(NetworkBuilder& n, const std::string& name, const std::string& kind, const Sizes& s, const Signal& input,
             const Signal& positions, std::int64_t tokens, const Signal* memory) {
  const auto program = [&](ModuleScope& m) {
    LocalId x = m.in("input", input);
    const LocalId bias = m.in("positions", positions);
    const LocalId norm = rms_norm(m, "attention_norm", x, kEpsilon);
    x = m.add("attention_sum", x,
              attention(m, "attention", s, norm, norm, {.queries = tokens, .causal = memory != nullptr}, bias));
    if (memory != nullptr) {
      const LocalId asking = rms_norm(m, "cross_norm", x, kEpsilon);
      x = m.add(
          "cross_sum", x,
          attention(m, "cross", s, asking, m.in("memory", *memory), {.queries = tokens, .keys = s.sources}, kNone));
    }
    const LocalId last = rms_norm(m, "feed_forward_norm", x, kEpsilon);
    m.output(m.add("sum", x,
                   s.gated ? gated_feed_forward(m, last, s.width, s.hidden, "gelu_tanh")
                           : feed_forward(m, last, s.width, s.hidden, "relu", false)));
  };
  return n.module(name, kind, program, /*recomputable=*/true);
}

Signal encoder(NetworkBuilder& n, const Sizes& s, Signal x) {
  const Signal positions = relative_positions(n, "encoder_positions", s, s.sources, true);
  for (std::int64_t i = 0; i < s.keys.integer("layers"); ++i)
    x = block(n, indexed("encoder", i), "encoder", s, x, positions, s.sources, nullptr);
  return n.module("memory", "memory",
                  [&](ModuleScope& m) { m.output(rms_norm(m, "norm", m.in("input", x), kEpsilon)); });
}

void head(NetworkBuilder& n, const Sizes& s, const Signal& x, const Signal& targets) {
  n.module("head", "head", [&](ModuleScope& m) {
    LocalId y = rms_norm(m, "norm", m.in("input", x), kEpsilon);
    LocalId shared = kNone;
    if (s.tied) {
      const double factor = 1 / std::sqrt(static_cast<double>(s.hidden));
      y = m.call("scaled", "scale", {y}, {{"factor", factor}});
      shared = m.in("output.weight", n.weight("embedding", "tokens"));
    }
    m.output(language_loss(m, {s.vocabulary, s.padding}, y, m.in("targets", targets), shared, /*bias=*/false));
  });
}

Network t5(const WorkloadOptions& w) {
  const Sizes s(w);
  NetworkBuilder n("t5", w.precision);
  const Signal sources = n.batch("sources", Shape({s.batch, s.sources}, DType::I64), s.vocabulary);
  const Signal inputs = n.batch("inputs", Shape({s.batch, s.targets}, DType::I64), s.vocabulary);
  const Signal targets = n.batch("targets", Shape({s.batch, s.targets}, DType::I64), s.vocabulary);
  Signal x = n.module("embedding", "embedding", [&](ModuleScope& m) {
    m.output(m.embedding("tokens", m.in("tokens", sources), s.vocabulary, s.hidden, s.tied ? s.padding : 0));
  });
  const Signal memory = encoder(n, s, x);
  x = n.module("decoder_embedding", "decoder_embedding", [&](ModuleScope& m) {
    m.output(m.embedding_by("tokens", m.in("tokens", inputs), m.in("weight", n.weight("embedding", "tokens"))));
  });
  const Signal positions = relative_positions(n, "decoder_positions", s, s.targets, false);
  const std::int64_t layers = w.keys.integer("decoder_layers");
  for (std::int64_t i = 0; i < (layers > 0 ? layers : w.keys.integer("layers")); ++i)
    x = block(n, indexed("decoder", i), "decoder", s, x, positions, s.targets, &memory);
  head(n, s, x, targets);
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(t5, t5, kKeys, "Encoder and decoder with relative positions (T5), trained on pairs of texts")
