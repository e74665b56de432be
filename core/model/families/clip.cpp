// CLIP (Radford et al. 2021, arXiv 2103.00020): a vision transformer and a causal text transformer, whose projections
// meet in a contrastive loss. A text's last token stands for it.
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/vision.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr const char* kGelu = "quick_gelu";

std::vector<FamilyKey> tower_keys(const std::string& name, const std::string& what) {
  return {size_key(name + "_layers", {1, kMostLayers}, "Blocks of the " + what + " tower."),
          multiple_key(name + "_hidden", {1, 1 << 20}, name + "_heads", "Width of the " + what + " tower's layers."),
          size_key(name + "_heads", {1, 1 << 16}, "Attention heads of the " + what + " tower.")};
}

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
    token = m.layer_norm("ln", select_token(m, "token", token, sequence, index), kEpsilon);
    m.output(m.call("unit", "normalise_rows", {m.linear("projection", token, width, false)}, {}));
  });
}

Signal texts(NetworkBuilder& n, const WorkloadOptions& w) {
  const std::int64_t sequence = w.keys.integer("sequence"), vocabulary = w.keys.integer("vocabulary");
  const std::int64_t hidden = w.keys.integer("text_hidden"), heads = w.keys.integer("text_heads");
  require_product("batch, sequence, text_hidden", {w.batch, sequence, 4 * hidden});
  require_product("vocabulary, text_hidden", {vocabulary, hidden});
  const Signal tokens = n.batch("tokens", Shape({w.batch, sequence}, DType::I64), vocabulary);
  Signal x = n.module("text_embedding", "text_embedding", [&](ModuleScope& m) {
    m.output(m.positions("positions", m.embedding("tokens", m.in("tokens", tokens), vocabulary, hidden), sequence));
  });
  for (std::int64_t i = 0; i < w.keys.integer("text_layers"); ++i)
    x = plain_block(n, indexed("text_block", i), "text_block", heads, 4 * hidden, x,
                    {.tokens = sequence, .activation = kGelu, .causal = true, .epsilon = kEpsilon});
  return projected(n, "text", x, sequence, sequence - 1, w.keys.integer("projection"));
}

Network clip(const WorkloadOptions& w) {
  const PatchSizes s(w.keys, "vision_", w.batch);
  NetworkBuilder n("clip", w.precision);
  const Signal images = image_batch(n, w.keys, w.batch);
  Signal x = patch_tokens(n, "patches", s, images, {.bias = false, .norm_after = true, .epsilon = kEpsilon});
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = vision_block(n, indexed("vision_block", i), s, x,
                     {.tokens = s.tokens(true), .activation = kGelu, .epsilon = kEpsilon});
  const Signal image = projected(n, "vision", x, s.tokens(true), 0, w.keys.integer("projection"));
  const Signal text = texts(n, w);
  n.module("head", "head", [&](ModuleScope& m) {
    m.output(m.call("loss", "contrastive", {m.in("image", image), m.in("text", text)}, {}));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(clip, clip, kKeys, "Image and text towers, trained to find each other's pairs (CLIP)")
