#include "core/model/families/common/towers.hpp"

#include "core/model/families/common/checks.hpp"

namespace tandem {
namespace {

constexpr const char* kClipGelu = "quick_gelu";

}  // namespace

std::vector<FamilyKey> tower_keys(const std::string& name, const std::string& what) {
  return {size_key(name + "_layers", {1, kMostLayers}, "Blocks of the " + what + " tower."),
          multiple_key(name + "_hidden", {1, 1 << 20}, name + "_heads", "Width of the " + what + " tower's layers."),
          size_key(name + "_heads", {1, 1 << 16}, "Attention heads of the " + what + " tower.")};
}

Signal image_tower(NetworkBuilder& n, const TowerNames& names, const PatchSizes& s, ImageStyle style,
                   const Signal& images) {
  const bool clip = style == ImageStyle::Clip;
  const double epsilon = clip ? kClipEpsilon : kVisionEpsilon;
  Signal x = patch_tokens(n, names.first, s, images,
                          {.class_token = clip, .bias = !clip, .norm_after = clip, .epsilon = epsilon});
  const BlockOptions options = {
      .tokens = s.tokens(clip), .activation = clip ? kClipGelu : "gelu", .causal = false, .epsilon = epsilon};
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = plain_block(n, indexed(names.block, i), names.kind, s.heads, s.width, x, options);
  return x;
}

TextSizes::TextSizes(const KeyValues& k, std::int64_t texts)
    : batch(texts),
      layers(k.integer("text_layers")),
      hidden(k.integer("text_hidden")),
      heads(k.integer("text_heads")),
      vocabulary(k.integer("vocabulary")),
      sequence(k.integer("sequence")) {
  require_product("batch, sequence, text_hidden", {batch, sequence, 4 * hidden});
  require_product("vocabulary, text_hidden", {vocabulary, hidden});
}

Signal text_tower(NetworkBuilder& n, const TowerNames& names, const TextSizes& s) {
  const Signal tokens = n.batch("tokens", Shape({s.batch, s.sequence}, DType::I64), s.vocabulary);
  Signal x = n.module(names.first, names.first, [&](ModuleScope& m) {
    const LocalId rows = m.embedding("tokens", m.in("tokens", tokens), s.vocabulary, s.hidden);
    m.output(m.positions("positions", rows, s.sequence));
  });
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = plain_block(n, indexed(names.block, i), names.kind, s.heads, 4 * s.hidden, x,
                    {.tokens = s.sequence, .activation = kClipGelu, .causal = true, .epsilon = kClipEpsilon});
  return x;
}

}  // namespace tandem
