#include "core/model/families/common/speech.hpp"

#include <algorithm>
#include <utility>

#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/layers.hpp"

namespace tandem {

SpeechSizes::SpeechSizes(const KeyValues& k, const std::string& prefix, std::int64_t samples)
    : batch(samples),
      layers(k.integer(prefix + "layers")),
      hidden(k.integer(prefix + "hidden")),
      heads(k.integer(prefix + "heads")),
      mels(k.integer("mels")),
      frames(k.integer("frames")),
      positions(frames / 2) {
  require_divisor(prefix + "heads", heads, prefix + "hidden", hidden);
  for (const auto& [key, size] : {std::pair(std::string("frames"), frames), std::pair(prefix + "hidden", hidden)})
    require_option(size % 2 == 0, key, std::to_string(size) + " is odd", "allowed: an even number");
  require_product(prefix + "hidden", {hidden, 4 * hidden});
  require_product("batch, frames, " + prefix + "hidden", {batch, frames, std::max(mels, 4 * hidden)});
}

Signal mel_batch(NetworkBuilder& n, const SpeechSizes& s) {
  return n.media("audio", "mels", Shape({s.batch, s.mels, s.frames}, n.type()));
}

namespace {

// Keys have no bias.
constexpr ProjectionBiases kBiases = {.k = false};

}  // namespace

Signal speech_block(NetworkBuilder& n, const std::string& name, const std::string& kind, const SpeechSizes& s,
                    const Signal& input, std::int64_t tokens, const Signal* memory) {
  const auto program = [&](ModuleScope& m) {
    LocalId x = m.in("input", input);
    const LocalId norm = m.layer_norm("attention_norm", x, kSpeechEpsilon);
    const AttendOptions self = {.heads = s.heads, .queries = tokens, .causal = memory != nullptr};
    x = m.add("attention_sum", x, attention_of(m, "attention", norm, norm, s.hidden, kBiases, self));
    if (memory != nullptr) {
      const LocalId asking = m.layer_norm("cross_norm", x, kSpeechEpsilon), context = m.in("memory", *memory);
      const AttendOptions cross = {.heads = s.heads, .queries = tokens, .keys = s.positions};
      x = m.add("cross_sum", x, attention_of(m, "cross", asking, context, s.hidden, kBiases, cross));
    }
    const LocalId last = m.layer_norm("feed_forward_norm", x, kSpeechEpsilon);
    m.output(m.add("sum", x, feed_forward(m, last, 4 * s.hidden, s.hidden, "gelu")));
  };
  return n.module(name, kind, program, /*recomputable=*/true);
}

Signal speech_encoder(NetworkBuilder& n, const SpeechSizes& s, const SpeechNames& names, const Signal& mels,
                      const Finish& finish) {
  Signal x = n.module(names.frames, names.frames, [&](ModuleScope& m) {
    LocalId y = conv(m, "conv1", m.in("mels", mels), {.outputs = s.hidden, .kernel = 3, .padding = 1});
    y = conv(m, "conv2", m.activation("gelu1", y, "gelu"),
             {.outputs = s.hidden, .kernel = 3, .stride = 2, .padding = 1});
    m.output(m.call("tokens", "tokens_of", {m.activation("gelu2", y, "gelu")}, {}));
  });
  x = n.module(names.positions, names.positions, [&](ModuleScope& m) {
    m.output(m.call("sinusoids", "positions", {m.in("input", x)},
                    {{"sequence", s.positions}, {"sinusoids", std::int64_t{1}}}));
    m.freeze();
  });
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = speech_block(n, indexed(names.block, i), names.block, s, x, s.positions, nullptr);
  return n.module(names.output, names.output, [&](ModuleScope& m) { m.output(finish(m, m.in("input", x))); });
}

}  // namespace tandem
