// Vision transformer (Dosovitskiy et al. 2021, arXiv 2010.11929): patches as tokens, a class token, learned positions,
// blocks with norms before, and a classifier of the class token or of the mean.
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/vision.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined(
        {image_keys(224, 3),
         {size_key("patch", {1, 4096}, 16, "Height and width of a patch; divides image."),
          size_key("layers", {1, kMostLayers}, "Blocks."),
          multiple_key("hidden", {1, 1 << 20}, "heads", "Width of a layer; divisible by heads."),
          size_key("heads", {1, 1 << 16}, "Attention heads."),
          size_key("feed_forward", {0, 1 << 22}, 0, "Width of the feed-forward layer; 0: four times hidden."),
          size_key("classes", {2, kMostSize}, 1000, "Classes."),
          word_key("pooling", {"token", "mean"}, "What is classified: the class token, or the mean of all tokens.")}}),
    recomputing_keys(),
    {},
    {{"image", 24}, {"patch", 6}, {"layers", 2}, {"hidden", 48}, {"heads", 3}, {"classes", 11}}};

Network vit(const WorkloadOptions& w) {
  const PatchSizes s(w.keys, "", w.batch);
  const bool has_token = w.keys.text("pooling") == "token";
  NetworkBuilder n("vit", w.precision);
  const auto [images, labels] = labelled_images(n, w.keys, w.batch);
  Signal x = patch_tokens(n, "patches", s, images, {.class_token = has_token, .bias = true});
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = vision_block(n, indexed("block", i), s, x, {.tokens = s.tokens(has_token), .activation = "gelu"});
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId norm = m.layer_norm("ln", m.in("input", x), kVisionEpsilon);
    const LocalId pooled = has_token ? select_token(m, "class", norm, s.tokens(true), 0)
                                     : m.call("mean", "mean_tokens", {norm}, {{"sequence", s.tokens(false)}});
    m.output(m.cross_entropy("loss", m.linear("classes", pooled, w.keys.integer("classes")), m.in("labels", labels)));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(vit, vit, kKeys, "Vision transformer, trained to classify images")
