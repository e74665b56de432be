// The UNet of latent diffusion (Ho et al. 2020; Rombach et al. 2022, arXiv 2112.10752; Stable Diffusion 1.5): residual
// blocks and, at the levels that attend, transformers with cross attention to a context, down and up with skip
// connections. Trained to tell the noise in a noised latent.
#include "core/model/families/common/family.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5, kAttentionEpsilon = 1e-6;
constexpr std::int64_t kTimesteps = 1000, kMostLevels = 8;

const FamilyKeys kKeys = {
    {size_key("image", {1, 1 << 14}, 64, "Height and width of a latent."),
     size_key("channels", {1, 1 << 12}, 4, "Numbers of a position."),
     size_key("width", {1, 1 << 14}, 320, "Channels of the first level; a multiple of groups."),
     sizes_key("multipliers", 1, kMostLevels, {1, 64}, {1, 2, 4, 4}, "Channels of each level, over width."),
     sizes_key("attends", 1, kMostLevels, {0, 1}, {1, 1, 1, 0}, "Whether each level attends: 1, or 0."),
     size_key("blocks", {1, 64}, 2, "Residual blocks of a level on the way down; one more on the way up."),
     size_key("heads", {1, 1 << 16}, 8, "Attention heads."),
     size_key("groups", {1, 1 << 14}, 32, "Of the group norms."),
     size_key("context", {1, kMostSize}, 77, "Tokens of a context."),
     size_key("context_width", {1, 1 << 20}, 768, "Numbers of a context's token.")},
    training_keys(),
    {},
    {{"image", 8},
     {"width", 16},
     {"multipliers", std::vector<std::int64_t>{1, 2}},
     {"attends", std::vector<std::int64_t>{0, 1}},
     {"blocks", 1},
     {"heads", 2},
     {"groups", 4},
     {"context", 5},
     {"context_width", 12}}};

class Unet {
 public:
  explicit Unet(const WorkloadOptions& w) : k_(w.keys), batch_(w.batch), n_("unet", w.precision) {
    levels_ = std::ssize(k_.integers("multipliers"));
    require_option(std::ssize(k_.integers("attends")) == levels_, "attends, multipliers",
                   "are for " + std::to_string(std::ssize(k_.integers("attends"))) + " levels, multipliers for " +
                       std::to_string(levels_),
                   "allowed: one number for each level");
    const std::int64_t image = k_.integer("image"), halved = std::int64_t{1} << (levels_ - 1);
    require_option(image % halved == 0, "image, multipliers", std::to_string(image) + " cannot be halved so often",
                   "allowed: a multiple of " + std::to_string(halved));
    const std::int64_t width = k_.integer("width");
    require_divisor("groups", k_.integer("groups"), "width", width);
    require_divisor("heads", k_.integer("heads"), "width", width);
    for (const std::int64_t m : k_.integers("multipliers")) {
      require_product("width, multipliers", {m * width, m * width, 36});
      require_product("batch, image, width, multipliers", {batch_, image, image, 8 * m * width});
      require_product("batch, heads, image", {batch_, k_.integer("heads"), image * image});
    }
    require_product("batch, context, context_width", {batch_, k_.integer("context"), k_.integer("context_width")});
  }

  Network build() {
    const std::int64_t image = k_.integer("image"), channels = k_.integer("channels");
    const Shape latents({batch_, channels, image, image}, n_.type());
    const Signal noised = n_.batch("noised", latents),
                 times = n_.batch("times", Shape({batch_}, DType::I64), kTimesteps);
    context_ = n_.batch("context", Shape({batch_ * k_.integer("context"), k_.integer("context_width")}, n_.type()));
    const Signal noise = n_.batch("noise", latents);
    embed(times);
    Signal x = n_.module("in", "in", [&](ModuleScope& m) {
      m.output(conv(m, "conv", m.in("noised", noised), {.outputs = k_.integer("width"), .kernel = 3, .padding = 1}));
    });
    x = up(middle(down(x)));
    n_.module("head", "head", [&](ModuleScope& m) {
      const LocalId norm = group_norm(m, "norm", m.in("input", x), k_.integer("groups"), kEpsilon);
      const LocalId told =
          conv(m, "conv", m.activation("silu", norm, "silu"), {.outputs = channels, .kernel = 3, .padding = 1});
      m.output(m.call("loss", "squared_error", {told, m.in("noise", noise)}, {}));
    });
    return n_.finish();
  }

 private:
  std::int64_t width_of(std::int64_t level) const {
    return k_.integer("width") * k_.integers("multipliers")[static_cast<std::size_t>(level)];
  }
  bool attends(std::int64_t level) const { return k_.integers("attends")[static_cast<std::size_t>(level)] != 0; }
  static std::string named(const std::string& name, std::int64_t level, std::int64_t i) {
    return indexed(name, level) + indexed("_", i);
  }

  void embed(const Signal& times) {
    time_ = n_.module("time", "time", [&](ModuleScope& m) {
      const std::int64_t width = k_.integer("width");
      const LocalId waves = m.call("waves", "sinusoids", {m.in("times", times)}, {{"dim", width}, {"period", 10000.0}});
      const LocalId hidden = m.activation("silu", m.linear("hidden", waves, 4 * width), "silu");
      // Blocks read its silu, which is made once.
      m.output(m.activation("out_silu", m.linear("out", hidden, 4 * width), "silu"));
    });
  }

  Signal residual(const std::string& name, const Signal& input, const Signal* skip, std::int64_t outputs) {
    return n_.module(name, "residual", [&](ModuleScope& m) {
      const std::int64_t groups = k_.integer("groups");
      LocalId x = m.in("input", input);
      if (skip != nullptr) x = m.call("both", "concat", {x, m.in("skip", *skip)}, {{"axis", std::int64_t{1}}});
      LocalId y = m.activation("silu1", group_norm(m, "norm1", x, groups, kEpsilon), "silu");
      y = conv(m, "conv1", y, {.outputs = outputs, .kernel = 3, .padding = 1});
      y = m.call("timed", "add_channels", {y, m.linear("time", m.in("time", time_), outputs)}, {});
      y = m.activation("silu2", group_norm(m, "norm2", y, groups, kEpsilon), "silu");
      y = conv(m, "conv2", y, {.outputs = outputs, .kernel = 3, .padding = 1});
      const bool changes = m.shape(x).dims[1] != outputs;
      m.output(m.add("sum", y, changes ? conv(m, "skip", x, {.outputs = outputs}) : x));
    });
  }

  // Self attention, attention to the context, and a gated feed-forward layer, over the positions of an image.
  Signal transformer(const std::string& name, const Signal& input) {
    return n_.module(name, "transformer", [&](ModuleScope& m) {
      const LocalId image = m.in("input", input), context = m.in("context", context_);
      const Shape shape = m.shape(image);
      const std::int64_t width = shape.dims[1], positions = shape.dims[2] * shape.dims[3];
      const AttendOptions self = {.heads = k_.integer("heads"), .queries = positions};
      AttendOptions cross = self;
      cross.keys = k_.integer("context");
      const ProjectionBiases biases = {.q = false, .k = false, .v = false};
      const LocalId norm = group_norm(m, "norm", image, k_.integer("groups"), kAttentionEpsilon);
      LocalId x = m.call("tokens", "tokens_of", {conv(m, "in", norm, {.outputs = width})}, {});
      const LocalId first = m.layer_norm("norm1", x, kEpsilon);
      x = m.add("self_sum", x, attention_of(m, "self", first, first, width, biases, self));
      x = m.add("cross_sum", x,
                attention_of(m, "cross", m.layer_norm("norm2", x, kEpsilon), context, width, biases, cross));
      const LocalId both = m.linear("up", m.layer_norm("norm3", x, kEpsilon), 8 * width);
      const auto half = [&](const char* part, std::int64_t at) {
        return m.call(part, "columns", {both}, {{"first", at}, {"count", 4 * width}});
      };
      const LocalId gated =
          multiply(m, "gated", half("value", 0), m.activation("gelu", half("gate", 4 * width), "gelu"));
      x = m.add("sum", x, m.linear("down", gated, width));
      const LocalId back = m.call("image", "image_of", {x}, {{"height", shape.dims[2]}, {"width", shape.dims[3]}});
      m.output(m.add("output", image, conv(m, "out", back, {.outputs = width})));
    });
  }

  Signal resized(const std::string& name, const Signal& input, bool larger) {
    return n_.module(name, larger ? "larger" : "smaller", [&](ModuleScope& m) {
      LocalId x = m.in("input", input);
      if (larger) x = m.call("upsample", "upsample", {x}, {{"factor", std::int64_t{2}}});
      const std::int64_t stride = larger ? 1 : 2;
      m.output(conv(m, "conv", x, {.outputs = m.shape(x).dims[1], .kernel = 3, .stride = stride, .padding = 1}));
    });
  }

  Signal down(Signal x) {
    skips_.push_back(x);
    for (std::int64_t level = 0; level < levels_; ++level) {
      for (std::int64_t i = 0; i < k_.integer("blocks"); ++i) {
        x = residual(named("down", level, i), x, nullptr, width_of(level));
        if (attends(level)) x = transformer(named("down_attention", level, i), x);
        skips_.push_back(x);
      }
      if (level + 1 == levels_) break;
      x = resized(indexed("smaller", level), x, false);
      skips_.push_back(x);
    }
    return x;
  }
  Signal middle(Signal x) {
    const std::int64_t width = width_of(levels_ - 1);
    x = transformer("middle_attention", residual("middle_0", x, nullptr, width));
    return residual("middle_1", x, nullptr, width);
  }
  Signal up(Signal x) {
    for (std::int64_t level = levels_; level-- > 0;) {
      for (std::int64_t i = 0; i < k_.integer("blocks") + 1; ++i) {
        x = residual(named("up", level, i), x, &skips_.back(), width_of(level));
        skips_.pop_back();
        if (attends(level)) x = transformer(named("up_attention", level, i), x);
      }
      if (level > 0) x = resized(indexed("larger", level), x, true);
    }
    return x;
  }

  const KeyValues& k_;
  std::int64_t batch_, levels_ = 0;
  NetworkBuilder n_;
  Signal time_, context_;
  std::vector<Signal> skips_;
};

Network unet(const WorkloadOptions& w) { return Unet(w).build(); }

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(unet, unet, kKeys, "UNet of latent diffusion (Stable Diffusion), trained to tell noise")
