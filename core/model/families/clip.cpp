// CLIP (Radford et al. 2021, arXiv 2103.00020): a vision transformer and a causal text transformer, whose projections
// meet in a contrastive loss. A text's last token stands for it.
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/towers.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined({image_keys(224, 3),
            {size_key("patch", {1, 4096}, 14, "Height and width of a patch; divides image.")},
            tower_keys("vision", "image"),
            tower_keys("text", "text"),
            {size_key("vocabulary", {2, kMostVocabulary}, 49408, "Tokens of the texts' vocabulary."),
             size_key("sequence", {1, kMostSize}, 77, "Tokens of a text."),
             size_key("projection", {1, 1 << 20}, "Width of the space where images and texts meet.")}}),
    recomputing_keys(),
    {},
    {{"image", 24},
     {"patch", 6},
     {"vision_layers", 2},
     {"vision_hidden", 48},
     {"vision_heads", 3},
     {"text_layers", 2},
     {"text_hidden", 36},
     {"text_heads", 3},
     {"vocabulary", 301},
     {"sequence", 13},
     {"projection", 20}}};

// The token at `index` of each sample, projected, of length 1.
Signal projected(NetworkBuilder& n, const std::string& name, const Signal& x, std::int64_t sequence, std::int64_t index,
                 std::int64_t width) {
  return n.module(name + "_projection", name + "_projection", [&](ModuleScope& m) {
    LocalId token = m.in("input", x);
    // The image's norm is of its class token alone, which is the same.
    token = m.layer_norm("ln", select_token(m, "token", token, sequence, index), kClipEpsilon);
    m.output(m.call("unit", "normalise_rows", {m.linear("projection", token, width, false)}, {}));
  });
}

Network clip(const WorkloadOptions& w) {
  const PatchSizes s(w.keys, "vision_", w.batch);
  const std::int64_t projection = w.keys.integer("projection");
  NetworkBuilder n("clip", w.precision);
  const Signal patches =
      image_tower(n, {"patches", "vision_block", "block"}, s, ImageStyle::Clip, image_batch(n, w.keys, w.batch));
  const Signal image = projected(n, "vision", patches, s.tokens(true), 0, projection);
  const TextSizes t(w.keys, w.batch);
  const Signal tokens = text_tower(n, {"text_embedding", "text_block", "text_block"}, t);
  const Signal text = projected(n, "text", tokens, t.sequence, t.sequence - 1, projection);
  n.module("head", "head", [&](ModuleScope& m) {
    m.output(m.call("loss", "contrastive", {m.in("image", image), m.in("text", text)}, {}));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(clip, clip, kKeys, "Image and text towers, trained to find each other's pairs (CLIP)")
