// Whisper (Radford et al. 2022, arXiv 2212.04356): two convolutions over mel frames, an encoder with fixed positions,
// and a decoder of text with learned ones, which attends to it.
#include <algorithm>
#include <utility>

#include "core/model/families/common/family.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/families/common/transformer.hpp"
#include "core/model/families/common/vision.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5;

const FamilyKeys kKeys = {
    {size_key("layers", {1, kMostLayers}, "Blocks of the encoder."),
     size_key("decoder_layers", {0, kMostLayers}, 0, "Blocks of the decoder; 0: as many."),
     multiple_key("hidden", {2, 1 << 20}, "heads", "Width of a layer; even, and divisible by heads."),
     size_key("heads", {1, 1 << 16}, "Attention heads."), size_key("mels", {1, 4096}, 80, "Mel bands of a frame."),
     size_key("frames", {2, kMostSize}, 3000, "Mel frames of a sample; even."), vocabulary_key(),
     vocabulary_multiple_key(), size_key("sequence", {1, kMostSize}, 448, "Tokens of a sample.")},
    recomputing_keys(),
    {},
    {{"layers", 2}, {"hidden", 48}, {"heads", 3}, {"mels", 10}, {"frames", 50}, {"vocabulary", 301}, {"sequence", 13}}};

struct Sizes {
  explicit Sizes(const WorkloadOptions& w)
      : batch(w.batch),
        hidden(w.keys.integer("hidden")),
        heads(w.keys.integer("heads")),
        mels(w.keys.integer("mels")),
        frames(w.keys.integer("frames")),
        vocabulary(w.keys.integer("vocabulary")),
        padding(vocabulary_padding(w.keys)),
        tokens(w.keys.integer("sequence")),
        positions(frames / 2) {
    require_divisor("heads", heads, "hidden", hidden);
    for (const auto& [key, size] : {std::pair("frames", frames), std::pair("hidden", hidden)})
      require_option(size % 2 == 0, key, std::to_string(size) + " is odd", "allowed: an even number");
    require_product("hidden", {hidden, 4 * hidden});
    require_product("batch, frames, hidden", {batch, frames, std::max(mels, 4 * hidden)});
    require_product("batch, sequence, hidden", {batch, tokens, 4 * hidden});
    require_product("vocabulary, hidden", {vocabulary, hidden});
    require_product("batch, sequence, vocabulary", {batch, tokens, vocabulary + padding});
  }
  std::int64_t batch, hidden, heads, mels, frames, vocabulary, padding, tokens, positions;
};

// Keys have no bias.
constexpr ProjectionBiases kBiases = {.k = false};

Signal block(NetworkBuilder& n, const std::string& name, const std::string& kind, const Sizes& s, const Signal& input,
             std::int64_t tokens, const Signal* memory) {
  const auto program = [&](ModuleScope& m) {
    LocalId x = m.in("input", input);
    const LocalId norm = m.layer_norm("attention_norm", x, kEpsilon);
    const AttendOptions self = {.heads = s.heads, .queries = tokens, .causal = memory != nullptr};
    x = m.add("attention_sum", x, attention_of(m, "attention", norm, norm, s.hidden, kBiases, self));
    if (memory != nullptr) {
      const LocalId asking = m.layer_norm("cross_norm", x, kEpsilon), context = m.in("memory", *memory);
      const AttendOptions cross = {.heads = s.heads, .queries = tokens, .keys = s.positions};
      x = m.add("cross_sum", x, attention_of(m, "cross", asking, context, s.hidden, kBiases, cross));
    }
    const LocalId last = m.layer_norm("feed_forward_norm", x, kEpsilon);
    m.output(m.add("sum", x, feed_forward(m, last, 4 * s.hidden, s.hidden, "gelu")));
  };
  return n.module(name, kind, program, /*recomputable=*/true);
}

Signal encoder(NetworkBuilder& n, const Sizes& s, std::int64_t layers) {
  const Signal mels = n.batch("mels", Shape({s.batch, s.mels, s.frames}, n.type()));
  Signal x = n.module("frames", "frames", [&](ModuleScope& m) {
    LocalId y = conv(m, "conv1", m.in("mels", mels), {.outputs = s.hidden, .kernel = 3, .padding = 1});
    y = conv(m, "conv2", m.activation("gelu1", y, "gelu"),
             {.outputs = s.hidden, .kernel = 3, .stride = 2, .padding = 1});
    m.output(m.call("tokens", "tokens_of", {m.activation("gelu2", y, "gelu")}, {}));
  });
  x = n.module("frame_positions", "frame_positions", [&](ModuleScope& m) {
    m.output(m.call("sinusoids", "positions", {m.in("input", x)},
                    {{"sequence", s.positions}, {"sinusoids", std::int64_t{1}}}));
    m.freeze();
  });
  for (std::int64_t i = 0; i < layers; ++i) x = block(n, indexed("encoder", i), "encoder", s, x, s.positions, nullptr);
  return n.module("memory", "memory",
                  [&](ModuleScope& m) { m.output(m.layer_norm("ln", m.in("input", x), kEpsilon)); });
}

Network whisper(const WorkloadOptions& w) {
  const Sizes s(w);
  const std::int64_t layers = w.keys.integer("layers"), own = w.keys.integer("decoder_layers");
  NetworkBuilder n("whisper", w.precision);
  const Signal memory = encoder(n, s, layers);
  const Signal tokens = n.batch("tokens", Shape({s.batch, s.tokens}, DType::I64), s.vocabulary);
  const Signal targets = n.batch("targets", Shape({s.batch, s.tokens}, DType::I64), s.vocabulary);
  Signal x = n.module("embedding", "embedding", [&](ModuleScope& m) {
    const LocalId rows = m.embedding("tokens", m.in("tokens", tokens), s.vocabulary, s.hidden, s.padding);
    m.output(m.positions("positions", rows, s.tokens));
  });
  for (std::int64_t i = 0; i < (own > 0 ? own : layers); ++i)
    x = block(n, indexed("decoder", i), "decoder", s, x, s.tokens, &memory);
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId norm = m.layer_norm("ln", m.in("input", x), kEpsilon);
    const LocalId shared = m.in("output.weight", n.weight("embedding", "tokens"));
    m.output(language_loss(m, {s.vocabulary, s.padding}, norm, m.in("targets", targets), shared, /*bias=*/false));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(whisper, whisper, kKeys, "Speech encoder and text decoder (Whisper), trained to transcribe")
