// Images, sounds and texts in one space, each found by its pairs of the other two: ImageBind's idea (Girdhar et al.
// 2023, arXiv 2305.05665) with CLIP's image and text towers and Whisper's encoder, and all three kinds of pairs in the
// loss.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/model/families/common/family.hpp"
#include "core/model/families/common/modalities.hpp"
#include "core/model/families/common/speech.hpp"
#include "core/model/families/common/towers.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined(
        {image_keys(224, 3),
         {size_key("patch", {1, 4096}, 14, "Height and width of a patch; divides image.")},
         tower_keys("image", "image"),
         tower_keys("audio", "audio"),
         {size_key("mels", {1, 4096}, 80, "Mel bands of a frame."),
          size_key("frames", {2, kMostSize}, 3000, "Mel frames of a sound; even."),
          word_key("audio_pooling", {"mean", "last"},
                   "What stands for a sound: the mean of its tokens, or the last of them.")},
         tower_keys("text", "text"),
         {size_key("vocabulary", {2, kMostVocabulary}, 49408, "Tokens of the texts' vocabulary."),
          size_key("sequence", {1, kMostSize}, 77, "Tokens of a text."),
          size_key("projection", {1, 1 << 20}, "Width of the space where images, sounds and texts meet."),
          number_key("temperature", 1e-3, 10, 0.07,
                     "Products of pairs are divided by it, by one for each kind of pairs; it is where they begin, and "
                     "they are trained.")}}),
    mixed_keys(),
    {},
    {{"image", 24},
     {"patch", 6},
     {"image_layers", 2},
     {"image_hidden", 48},
     {"image_heads", 3},
     {"audio_layers", 2},
     {"audio_hidden", 40},
     {"audio_heads", 5},
     {"mels", 10},
     {"frames", 30},
     {"text_layers", 2},
     {"text_hidden", 36},
     {"text_heads", 3},
     {"vocabulary", 301},
     {"sequence", 13},
     {"projection", 20}}};

struct Tower {
  Items items;
  Signal rows;  // [items.rows(), projection], each of length 1
};

// The features of all items, one a token, in the common space.
Tower aligned(NetworkBuilder& n, const Items& items, const Signal& encoded, std::int64_t width) {
  const Features features = features_of(n, items, encoded);
  const std::string name = items.modality + "_aligner";
  return {items, n.module(name, name, [&](ModuleScope& m) {
            m.output(m.call("unit", "normalise_rows", {m.linear("projection", features.in(m), width, false)}, {}));
          })};
}

Tower images(NetworkBuilder& n, const WorkloadOptions& w) {
  const Items items = items_of(w, "image", w.batch);
  const PatchSizes s(w.keys, "image_", items.encoded);
  const Signal x = image_tower(n, {"image_encoder_patches", "image_encoder", "image_encoder"}, s, ImageStyle::Clip,
                               image_batch(n, w.keys, items.encoded));
  const Signal encoded = n.module("image_encoder_output", "image_encoder_output", [&](ModuleScope& m) {
    const LocalId token = select_token(m, "class", m.in("input", x), s.tokens(true), 0);
    m.output(m.layer_norm("ln", token, kClipEpsilon));
  });
  return aligned(n, items, encoded, w.keys.integer("projection"));
}

Tower sounds(NetworkBuilder& n, const WorkloadOptions& w) {
  const Items items = items_of(w, "audio", w.batch);
  const SpeechSizes s(w.keys, "audio_", items.encoded);
  const bool mean = w.keys.text("audio_pooling") == "mean";
  const auto finish = [&](ModuleScope& m, LocalId x) {
    const LocalId token = mean ? m.call("mean", "mean_tokens", {x}, {{"sequence", s.positions}})
                               : select_token(m, "last", x, s.positions, s.positions - 1);
    return m.layer_norm("ln", token, kSpeechEpsilon);
  };
  const Signal encoded =
      speech_encoder(n, s, {"audio_encoder_frames", "audio_encoder_positions", "audio_encoder", "audio_encoder_output"},
                     mel_batch(n, s), finish);
  return aligned(n, items, encoded, w.keys.integer("projection"));
}

Tower texts(NetworkBuilder& n, const WorkloadOptions& w) {
  const Items items = items_of(w, "text", w.batch);
  const TextSizes s(w.keys, items.encoded);
  const Signal x = text_tower(n, {"text_encoder_embedding", "text_encoder", "text_encoder"}, s);
  const Signal encoded = n.module("text_encoder_output", "text_encoder_output", [&](ModuleScope& m) {
    const LocalId token = select_token(m, "last", m.in("input", x), s.sequence, s.sequence - 1);
    m.output(m.layer_norm("ln", token, kClipEpsilon));
  });
  return aligned(n, items, encoded, w.keys.integer("projection"));
}

// Pairs of one kind: which row of each side, and how many of them there are.
struct Pairs {
  const Tower *a, *b;
  Signal rows_a, rows_b, count;
};

Pairs pairs_of(NetworkBuilder& n, const WorkloadOptions& w, const Tower& a, const Tower& b) {
  const std::string name = a.items.modality + "_" + b.items.modality;
  const std::int64_t pairs = items_of(w, name, w.batch).encoded;
  require_product("items." + name + ", projection", {pairs, std::max(pairs, w.keys.integer("projection"))});
  return {&a, &b, n.batch(name + "_a", Shape({pairs}, DType::I64), a.items.rows()),
          n.batch(name + "_b", Shape({pairs}, DType::I64), b.items.rows()),
          n.batch(name + "_count", Shape({1}, DType::I64), pairs + 1)};
}

// The mean of the kinds' losses: a kind without pairs has none.
void head(NetworkBuilder& n, const std::array<Pairs, 3>& kinds, double temperature) {
  n.module("head", "head", [&](ModuleScope& m) {
    std::vector<LocalId> in;
    for (const Pairs& p : kinds) {
      const std::string name = p.a->items.modality + "_" + p.b->items.modality;
      const auto side = [&](const char* which, const Signal& rows, const Tower& tower) {
        const LocalId index = m.in(name + which, rows);
        in.push_back(m.embedding_by(name + which + "_rows", index, m.in(tower.items.modality, tower.rows)));
      };
      side("_a", p.rows_a, *p.a), side("_b", p.rows_b, *p.b);
      in.push_back(m.in(name + "_count", p.count));
    }
    const auto count = static_cast<std::int64_t>(kinds.size());
    m.output(m.call("loss", "contrastive", in, {{"kinds", count}, {"counted", std::int64_t{1}}}));
    for (std::int64_t i = 0; i < count; ++i)
      m.begin_as(indexed("loss.logit_scale", i),
                 {Initial::Kind::Constant, static_cast<float>(std::log(1 / temperature))});
  });
}

Network trimodal(const WorkloadOptions& w) {
  require_known_items(w, {"image", "image_cached", "audio", "audio_cached", "text", "text_cached", "image_text",
                          "audio_text", "image_audio"});
  NetworkBuilder n("trimodal", w.precision);
  const Tower image = images(n, w), audio = sounds(n, w), text = texts(n, w);
  head(n, {pairs_of(n, w, image, text), pairs_of(n, w, audio, text), pairs_of(n, w, image, audio)},
       w.keys.number("temperature"));
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(trimodal, trimodal, kKeys, "Image, audio and text towers, trained to find each other's pairs")
