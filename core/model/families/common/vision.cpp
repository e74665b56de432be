#include "core/model/families/common/vision.hpp"

#include <algorithm>

#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/layers.hpp"

namespace tandem {

std::vector<FamilyKey> image_keys(std::int64_t image, std::int64_t channels) {
  return {size_key("image", {1, 1 << 14}, image, "Height and width of an image."),
          size_key("channels", {1, 1 << 12}, channels, "Numbers of a pixel.")};
}

Signal image_batch(NetworkBuilder& n, const KeyValues& keys, std::int64_t batch) {
  const std::int64_t image = keys.integer("image"), channels = keys.integer("channels");
  require_product("batch, channels, image", {batch, channels, image, image});
  return n.media("image", "images", Shape({batch, channels, image, image}, n.type()));
}

std::pair<Signal, Signal> labelled_images(NetworkBuilder& n, const KeyValues& keys, std::int64_t batch) {
  Signal images = image_batch(n, keys, batch);
  Signal labels = n.batch("labels", Shape({batch}, DType::I64), keys.integer("classes"));
  n.load("images", n.type(), {batch, images.shape.elements() / batch}, images.shape.bytes() + labels.shape.bytes());
  return {std::move(images), std::move(labels)};
}

PatchSizes::PatchSizes(const KeyValues& k, const std::string& prefix, std::int64_t samples)
    : batch(samples),
      image(k.integer("image")),
      channels(k.integer("channels")),
      patch(k.integer("patch")),
      layers(k.integer(prefix + "layers")),
      hidden(k.integer(prefix + "hidden")),
      heads(k.integer(prefix + "heads")),
      width(k.integer_or(prefix + "feed_forward", 0)) {
  if (width == 0) width = 4 * hidden;
  require_option(image % patch == 0, "patch, image",
                 std::to_string(patch) + " does not divide image (" + std::to_string(image) + ")",
                 "allowed: a divisor of image");
  require_option(hidden % heads == 0, prefix + "heads, " + prefix + "hidden",
                 std::to_string(heads) + " does not divide " + prefix + "hidden (" + std::to_string(hidden) + ")",
                 "allowed: a divisor of it");
  require_product("batch, image, patch, " + prefix + "hidden", {batch, tokens(true), std::max(width, 3 * hidden)});
  require_product(prefix + "hidden, " + prefix + "feed_forward", {hidden, width});
}

Signal patch_tokens(NetworkBuilder& n, const std::string& name, const PatchSizes& s, const Signal& images,
                    const PatchOptions& o) {
  return n.module(name, name, [&](ModuleScope& m) {
    const LocalId patches = conv(m, "patch", m.in("images", images),
                                 {.outputs = s.hidden, .kernel = s.patch, .stride = s.patch, .bias = o.bias});
    LocalId x = m.call("tokens", "tokens_of", {patches}, {});
    if (o.class_token) x = m.call("class", "prepend_token", {x}, {{"sequence", s.tokens(false)}});
    x = m.positions("positions", x, s.tokens(o.class_token));
    m.output(o.norm_after ? m.layer_norm("ln", x, o.epsilon) : x);
  });
}

Signal vision_block(NetworkBuilder& n, const std::string& name, const PatchSizes& s, const Signal& x,
                    const BlockOptions& o) {
  return plain_block(n, name, "block", s.heads, s.width, x, o);
}

Signal plain_block(NetworkBuilder& n, const std::string& name, const std::string& kind, std::int64_t heads,
                   std::int64_t width, const Signal& input, const BlockOptions& o) {
  const auto program = [&](ModuleScope& m) {
    const LocalId x = m.in("input", input);
    const std::int64_t hidden = m.shape(x).columns();
    const LocalId qkv = m.linear("qkv", m.layer_norm("ln1", x, o.epsilon), 3 * hidden);
    const LocalId attention = m.attention("attention", qkv, {heads, o.tokens, o.causal});
    const LocalId middle = m.add("middle", x, m.linear("projection", attention, hidden));
    m.output(
        m.add("output", middle, feed_forward(m, m.layer_norm("ln2", middle, o.epsilon), width, hidden, o.activation)));
  };
  return n.module(name, kind, program, /*recomputable=*/true);
}

LocalId select_token(ModuleBuilder& m, const std::string& name, LocalId x, std::int64_t sequence, std::int64_t index) {
  return m.call(name, "select_token", {x}, {{"sequence", sequence}, {"index", index}});
}

}  // namespace tandem
