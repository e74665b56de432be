// Language models that read images, sounds and videos: an encoder each, an aligner of its tokens, and a decoder of
// Llama's kind. Aligned tokens stand in the sequence, as LLaVA's (Liu et al. 2023, arXiv 2304.08485 and 2310.03744) and
// Qwen2-Audio's (Chu et al. 2024, arXiv 2407.10759), or are a memory that blocks attend to, as Flamingo's (Alayrac et
// al. 2022, arXiv 2204.14198). Videos have an encoder of their own, as Video-LLaVA's (Lin et al. 2023, arXiv
// 2311.10122).
#include <algorithm>
#include <functional>

#include "core/model/families/common/aligners.hpp"
#include "core/model/families/common/decoder.hpp"
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/modalities.hpp"
#include "core/model/families/common/speech.hpp"
#include "core/model/families/common/towers.hpp"

namespace tandem {
namespace {

std::vector<FamilyKey> encoder_keys() {
  return {
      size_key("patch", {1, 4096}, 14, "Height and width of a patch; divides image."),
      word_key("image_style", {"clip", "vit"},
               "clip: a class token that no aligner reads, a norm before the blocks, quick_gelu. vit: patches alone, "
               "with biases, gelu."),
      size_key("image_layers", {0, kMostLayers}, 0, "Blocks of the image encoder; 0: no images."),
      size_key("image_hidden", {1, 1 << 20}, 1024, "Width of the image encoder's layers."),
      size_key("image_heads", {1, 1 << 16}, 16, "Attention heads of the image encoder."),
      size_key("image_feed_forward", {0, 1 << 22}, 0, "Width of its feed-forward layers; 0: four times image_hidden."),
      flag_key("image_norm", true, "Whether a norm follows the image encoder's last block."),
      size_key("audio_layers", {0, kMostLayers}, 0, "Blocks of the audio encoder; 0: no sounds."),
      size_key("audio_hidden", {2, 1 << 20}, 1280, "Width of the audio encoder's layers; even."),
      size_key("audio_heads", {1, 1 << 16}, 20, "Attention heads of the audio encoder."),
      size_key("mels", {1, 4096}, 128, "Mel bands of a frame."),
      size_key("frames", {2, kMostSize}, 3000, "Mel frames of a sound; even."),
      size_key("audio_pool", {1, kMostSize}, 1, "Tokens of a sound in a row that are averaged; divides frames / 2."),
      size_key("video_frames", {0, 1 << 16}, 0,
               "Images of a video, for an encoder with the image encoder's sizes; 0: "
               "no videos."),
      word_key("video_pooling", {"mean", "none"},
               "mean: a patch's tokens of all frames are averaged. none: all are read.")};
}

std::vector<FamilyKey> fusion_keys() {
  return {word_key("aligner", {"mlp", "linear", "resampler"},
                   "What makes an encoder's tokens as wide as the decoder: linear; mlp: two layers with gelu between; "
                   "resampler: aligner_tokens learned queries that attend to them."),
          size_key("aligner_tokens", {1, kMostSize}, 64, "Tokens that a resampler makes of an item."),
          word_key("fusion", {"sequence", "cross_attention"},
                   "sequence: aligned tokens stand in the sequence, where the batch says. cross_attention: the "
                   "sequence is text alone, and some blocks attend to a memory of aligned tokens."),
          size_key("memory_tokens", {1, kMostSize}, 64, "Aligned tokens that a sample's text attends to."),
          size_key("cross_every", {1, kMostLayers}, 4, "Every so many blocks one attends to the memory.")};
}

const FamilyKeys kKeys = {
    joined({decoder_keys(), image_keys(336, 3), encoder_keys(), fusion_keys()}),
    mixed_keys(),
    {},
    {{"layers", 2},        {"hidden", 48},     {"heads", 6},        {"key_heads", 2},      {"feed_forward", 88},
     {"vocabulary", 257},  {"sequence", 37},   {"image", 24},       {"patch", 6},          {"image_layers", 2},
     {"image_hidden", 36}, {"image_heads", 3}, {"audio_layers", 2}, {"audio_hidden", 40},  {"audio_heads", 5},
     {"mels", 10},         {"frames", 20},     {"audio_pool", 2},   {"aligner_tokens", 5}, {"memory_tokens", 11},
     {"cross_every", 2}}};

// Of an image tower's tokens those of patches.
LocalId patches_of(ModuleScope& m, const WorkloadOptions& w, const PatchSizes& s, ImageStyle style, LocalId x) {
  const std::int64_t classes = style == ImageStyle::Clip ? 1 : 0;
  x = m.call("patches", "select_token", {x},
             {{"sequence", s.tokens(classes > 0)}, {"index", classes}, {"count", s.tokens(false)}});
  return w.keys.flag("image_norm") ? m.layer_norm("ln", x, classes > 0 ? kClipEpsilon : kVisionEpsilon) : x;
}

// Of images or of frames: `modality`_encoder, its output as `finish` leaves it.
Signal patches(NetworkBuilder& n, const WorkloadOptions& w, const std::string& modality, const PatchSizes& s,
               const Signal& images, const Finish& finish) {
  const std::string name = modality + "_encoder";
  const ImageStyle style = w.keys.text("image_style") == "clip" ? ImageStyle::Clip : ImageStyle::Vit;
  const Signal x = image_tower(n, {name + "_patches", name, name}, s, style, images);
  return n.module(name + "_output", name + "_output",
                  [&](ModuleScope& m) { m.output(finish(m, patches_of(m, w, s, style, m.in("input", x)))); });
}

class Builder {
 public:
  explicit Builder(const WorkloadOptions& w) : w_(w), s_(w), n_("multimodal_llm", w.precision) {}

  Network build() {
    require_some();
    if (size("image_layers") > 0) images();
    if (size("audio_layers") > 0) sounds();
    if (size("video_frames") > 0) videos();
    const Shape shape({s_.batch, s_.sequence}, DType::I64);
    const Signal tokens = n_.batch("tokens", shape, s_.vocabulary);
    const Signal targets = n_.batch("targets", shape, s_.vocabulary);
    const Signal text = decoder_embedding(n_, s_, tokens, kEmbedding);
    const bool in_sequence = w_.keys.text("fusion") == "sequence";
    decoder_head(n_, s_, in_sequence ? blocks(fused(text), nullptr) : cross_blocks(text), targets, kEmbedding);
    return n_.finish();
  }

 private:
  static constexpr const char* kEmbedding = "text_embedding";

  std::int64_t size(const char* key) const { return w_.keys.integer(key); }

  void require_some() const {
    require_known_items(w_, {"image", "image_cached", "audio", "audio_cached", "video", "video_cached"});
    require_option(size("image_layers") + size("audio_layers") > 0, "image_layers, audio_layers",
                   "are both 0, and there is nothing but text", "allowed: one that is not 0, or family llama");
    require_option(size("video_frames") == 0 || size("image_layers") > 0, "video_frames, image_layers",
                   "videos need the image encoder's sizes, and image_layers is 0",
                   "allowed: video_frames 0, or image_layers above 0");
  }

  void align(const Items& items, const Signal& encoded, std::int64_t heads) {
    const AlignerOptions options = {w_.keys.text("aligner"), size("aligner_tokens"), heads, s_.hidden};
    aligned_.push_back(aligner(n_, items.modality + "_aligner", features_of(n_, items, encoded), options));
  }

  void images() {
    const Items items = items_of(w_, "image", w_.batch);
    const PatchSizes s(w_.keys, "image_", items.encoded);
    const Signal encoded =
        patches(n_, w_, "image", s, image_batch(n_, w_.keys, items.encoded), [](ModuleScope&, LocalId x) { return x; });
    align(items, encoded, s.heads);
  }

  // Pooled before the norm, as Qwen2-Audio's.
  void sounds() {
    const Items items = items_of(w_, "audio", w_.batch);
    const SpeechSizes s(w_.keys, "audio_", items.encoded);
    const std::int64_t pool = size("audio_pool");
    require_option(s.positions % pool == 0, "audio_pool, frames",
                   std::to_string(pool) + " does not divide frames / 2 (" + std::to_string(s.positions) + ")",
                   "allowed: a divisor of it");
    const auto finish = [&](ModuleScope& m, LocalId x) {
      if (pool > 1) x = m.call("pooled", "mean_tokens", {x}, {{"sequence", pool}});
      return m.layer_norm("ln", x, kSpeechEpsilon);
    };
    const SpeechNames names = {"audio_encoder_frames", "audio_encoder_positions", "audio_encoder",
                               "audio_encoder_output"};
    align(items, speech_encoder(n_, s, names, mel_batch(n_, s), finish), s.heads);
  }

  void videos() {
    const Items items = items_of(w_, "video", w_.batch);
    const std::int64_t frames = size("video_frames");
    const PatchSizes s(w_.keys, "image_", items.encoded * frames);
    const Shape shape({s.batch, s.channels, s.image, s.image}, n_.type());
    require_product("batch, video_frames, channels, image", {s.batch, s.channels, s.image, s.image});
    const auto finish = [&](ModuleScope& m, LocalId x) {
      if (w_.keys.text("video_pooling") == "none") return x;
      return m.call("mean", "mean_tokens", {x}, {{"sequence", frames}, {"apart", s.tokens(false)}});
    };
    align(items, patches(n_, w_, "video", s, n_.media("video", "videos", shape, frames), finish), s.heads);
  }

  // Rows of the text's, images', sounds' and videos' tokens, one after another, as the batch says.
  Signal gathered(const std::vector<Signal>& parts, const std::string& index, std::int64_t rows) {
    std::int64_t all = 0;
    for (const Signal& part : parts) all += part.shape.rows();
    require_product("batch, sequence, hidden", {all, s_.hidden});
    const Signal places = n_.batch(index, Shape({rows}, DType::I64), all);
    return n_.module("fuse", "fuse", [&](ModuleScope& m) {
      std::vector<LocalId> in;
      for (std::size_t i = 0; i < parts.size(); ++i)
        in.push_back(m.in(indexed("part", static_cast<std::int64_t>(i)), parts[i]));
      const LocalId table = in.size() == 1 ? in[0] : m.call("table", "concat", in, {{"axis", std::int64_t{0}}});
      m.output(m.embedding_by("rows", m.in(index, places), table));
    });
  }

  Signal fused(const Signal& text) {
    std::vector<Signal> parts = {text};
    parts.insert(parts.end(), aligned_.begin(), aligned_.end());
    return gathered(parts, "fused_rows", s_.tokens());
  }

  Signal cross_blocks(const Signal& text) {
    require_product("batch, memory_tokens, hidden", {s_.batch, size("memory_tokens"), s_.hidden});
    const Signal memory = gathered(aligned_, "memory_rows", s_.batch * size("memory_tokens"));
    return blocks(text, &memory);
  }

  // Its last layer begins as zero, so that a decoder that was trained on text begins as it was, as with Flamingo's
  // gates.
  LocalId cross(ModuleScope& m, LocalId x, const Signal& memory) const {
    const LocalId norm = rms_norm(m, "cross_norm", x, s_.epsilon, s_.unit_offset);
    const AttendOptions options = {.heads = s_.heads, .queries = s_.sequence, .keys = size("memory_tokens")};
    const LocalId made = attention_of(m, "cross", norm, m.in("memory", memory), s_.heads * s_.head_size,
                                      {.q = false, .k = false, .v = false, .out = false}, options);
    m.begin_as("cross_out.weight", {Initial::Kind::Constant, 0});
    return made;
  }

  Signal blocks(Signal x, const Signal* memory) {
    const auto second = [&](ModuleScope& m, LocalId norm) {
      return gated_feed_forward(m, norm, s_.feed_forward, s_.hidden, s_.gate);
    };
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      DecoderBlockOptions options = {.kind = "backbone"};
      if (memory != nullptr && (i + 1) % size("cross_every") == 0)
        options.between = [&](ModuleScope& m, LocalId value) { return cross(m, value, *memory); };
      x = decoder_block(n_, s_, i, x, second, options);
    }
    return x;
  }

  const WorkloadOptions& w_;
  DecoderSizes s_;
  NetworkBuilder n_;
  std::vector<Signal> aligned_;  // [items * tokens, hidden] of each modality
};

Network multimodal_llm(const WorkloadOptions& w) { return Builder(w).build(); }

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(multimodal_llm, multimodal_llm, kKeys,
              "Encoders of images, sounds and videos, aligned with a decoder that is trained on the next token")
