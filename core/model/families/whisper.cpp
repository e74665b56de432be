// Whisper (Radford et al. 2022, arXiv 2212.04356): two convolutions over mel frames, an encoder with fixed positions,
// and a decoder of text with learned ones, which attends to it.
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/families/common/speech.hpp"
#include "core/model/families/common/transformer.hpp"

namespace tandem {
namespace {

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

Network whisper(const WorkloadOptions& w) {
  const SpeechSizes s(w.keys, "", w.batch);
  const std::int64_t vocabulary = w.keys.integer("vocabulary"), padding = vocabulary_padding(w.keys);
  const std::int64_t sequence = w.keys.integer("sequence"), own = w.keys.integer("decoder_layers");
  require_product("batch, sequence, hidden", {s.batch, sequence, 4 * s.hidden});
  require_product("vocabulary, hidden", {vocabulary, s.hidden});
  require_product("batch, sequence, vocabulary", {s.batch, sequence, vocabulary + padding});
  NetworkBuilder n("whisper", w.precision);
  const Signal memory = speech_encoder(n, s, {"frames", "frame_positions", "encoder", "memory"}, mel_batch(n, s),
                                       [](ModuleScope& m, LocalId x) { return m.layer_norm("ln", x, kSpeechEpsilon); });
  const Signal tokens = n.batch("tokens", Shape({s.batch, sequence}, DType::I64), vocabulary);
  const Signal targets = n.batch("targets", Shape({s.batch, sequence}, DType::I64), vocabulary);
  Signal x = n.module("embedding", "embedding", [&](ModuleScope& m) {
    const LocalId rows = m.embedding("tokens", m.in("tokens", tokens), vocabulary, s.hidden, padding);
    m.output(m.positions("positions", rows, sequence));
  });
  for (std::int64_t i = 0; i < (own > 0 ? own : s.layers); ++i)
    x = speech_block(n, indexed("decoder", i), "decoder", s, x, sequence, &memory);
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId norm = m.layer_norm("ln", m.in("input", x), kSpeechEpsilon);
    const LocalId shared = m.in("output.weight", n.weight("embedding", "tokens"));
    m.output(language_loss(m, {vocabulary, padding}, norm, m.in("targets", targets), shared, /*bias=*/false));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(whisper, whisper, kKeys, "Speech encoder and text decoder (Whisper), trained to transcribe")
