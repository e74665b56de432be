// Convolutional networks: ResNet of basic or bottleneck blocks (He et al. 2016, with the stride in the 3x3 convolution,
// as torchvision), and VGG (Simonyan and Zisserman 2015).
#include <algorithm>

#include "core/model/families/common/family.hpp"
#include "core/model/families/common/vision.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr std::int64_t kMostStages = 8;

const FamilyKeys kKeys = {
    joined(
        {image_keys(224, 3),
         {word_key("kind", {"bottleneck", "basic", "vgg"}, "Blocks of a residual network, or plain convolutions."),
          sizes_key("blocks", 1, kMostStages, {1, 1000}, "Blocks, or convolutions, of each stage."),
          size_key("width", {1, 1 << 14}, 64,
                   "Channels of the first stage; each later one has twice as many, of "
                   "vgg at most eight times."),
          size_key("hidden", {0, kMostSize}, 4096, "vgg: width of the two hidden layers of its classifier; 0: none."),
          size_key("classes", {2, kMostSize}, 1000, "Classes.")}}),
    training_keys(),
    {},
    {{"image", 37},
     {"kind", "bottleneck"},
     {"blocks", std::vector<std::int64_t>{1, 2}},
     {"width", 12},
     {"classes", 11}}};

LocalId window(ModuleBuilder& m, const std::string& name, LocalId x, const std::string& kind, std::int64_t kernel,
               std::int64_t stride, std::int64_t padding) {
  return m.call(name, "pool", {x}, {{"kind", kind}, {"kernel", kernel}, {"stride", stride}, {"padding", padding}});
}

LocalId normed_conv(ModuleBuilder& m, const std::string& name, LocalId x, ConvOptions options) {
  options.bias = false;
  return m.call(name + "_norm", "batch_norm", {conv(m, name, x, options)}, {{"epsilon", kEpsilon}});
}

LocalId relu(ModuleBuilder& m, const std::string& name, LocalId x) { return m.activation(name, x, "relu"); }

Signal residual_block(NetworkBuilder& n, const std::string& name, const Signal& input, std::int64_t width,
                      std::int64_t stride, bool bottleneck) {
  const std::int64_t outputs = bottleneck ? 4 * width : width;
  const auto program = [&](ModuleScope& m) {
    const LocalId x = m.in("input", input);
    LocalId y = x;
    if (bottleneck) {
      y = relu(m, "relu1", normed_conv(m, "conv1", y, {.outputs = width}));
      y = relu(m, "relu2", normed_conv(m, "conv2", y, {.outputs = width, .kernel = 3, .stride = stride, .padding = 1}));
      y = normed_conv(m, "conv3", y, {.outputs = outputs});
    } else {
      y = relu(m, "relu1", normed_conv(m, "conv1", y, {.outputs = width, .kernel = 3, .stride = stride, .padding = 1}));
      y = normed_conv(m, "conv2", y, {.outputs = width, .kernel = 3, .padding = 1});
    }
    const bool changes = stride != 1 || input.shape.dims[1] != outputs;
    const LocalId skip = changes ? normed_conv(m, "skip", x, {.outputs = outputs, .stride = stride}) : x;
    m.output(relu(m, "relu", m.add("sum", y, skip)));
  };
  return n.module(name, "block", program);
}

Signal residual_stages(NetworkBuilder& n, const WorkloadOptions& w, const Signal& images) {
  const bool bottleneck = w.keys.text("kind") == "bottleneck";
  std::int64_t width = w.keys.integer("width"), stage = 0;
  Signal x = n.module("stem", "stem", [&](ModuleScope& m) {
    const LocalId conv =
        normed_conv(m, "conv", m.in("images", images), {.outputs = width, .kernel = 7, .stride = 2, .padding = 3});
    m.output(window(m, "pool", relu(m, "relu", conv), "max", 3, 2, 1));
  });
  for (const std::int64_t blocks : w.keys.integers("blocks")) {
    for (std::int64_t i = 0; i < blocks; ++i)
      x = residual_block(n, "stage" + std::to_string(stage) + indexed("_block", i), x, width,
                         stage > 0 && i == 0 ? 2 : 1, bottleneck);
    width *= 2, ++stage;
  }
  return x;
}

Signal vgg_stages(NetworkBuilder& n, const WorkloadOptions& w, const Signal& images) {
  std::int64_t width = w.keys.integer("width"), stage = 0;
  Signal x = images;
  for (const std::int64_t convolutions : w.keys.integers("blocks")) {
    x = n.module(indexed("stage", stage), "stage", [&](ModuleScope& m) {
      LocalId y = m.in("input", x);
      for (std::int64_t i = 0; i < convolutions; ++i)
        y = relu(m, indexed("relu", i), conv(m, indexed("conv", i), y, {.outputs = width, .kernel = 3, .padding = 1}));
      m.output(window(m, "pool", y, "max", 2, 2, 0));
    });
    width = std::min(2 * width, 8 * w.keys.integer("width")), ++stage;
  }
  return x;
}

// Images as rows [batch, channels height width].
LocalId classified(ModuleScope& m, const WorkloadOptions& w, LocalId x) {
  if (w.keys.text("kind") != "vgg") {
    x = m.call("pool", "pool", {x}, {{"kind", std::string("average")}, {"kernel", std::int64_t{0}}});
  } else {
    x = m.call("rows", "flatten", {x}, {});
    for (std::int64_t i = 0; w.keys.integer("hidden") > 0 && i < 2; ++i)
      x = relu(m, indexed("hidden_relu", i), m.linear(indexed("hidden", i), x, w.keys.integer("hidden")));
  }
  return m.linear("classes", x, w.keys.integer("classes"));
}

Network convnet(const WorkloadOptions& w) {
  const std::int64_t halvings = std::ssize(w.keys.integers("blocks")) + (w.keys.text("kind") == "vgg" ? 0 : 1);
  require_option(w.keys.integer("image") >> halvings > 0, "image, blocks",
                 std::to_string(w.keys.integer("image")) + " is too small for so many stages",
                 "allowed: at least " + std::to_string(std::int64_t{1} << halvings));
  NetworkBuilder n("convnet", w.precision);
  const auto [images, labels] = labelled_images(n, w.keys, w.batch);
  const Signal x = w.keys.text("kind") == "vgg" ? vgg_stages(n, w, images) : residual_stages(n, w, images);
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId logits = classified(m, w, m.in("input", x));
    m.output(m.cross_entropy("loss", logits, m.in("labels", labels)));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(convnet, convnet, kKeys, "Convolutional network (ResNet, VGG), trained to classify images")
