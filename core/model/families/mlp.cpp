// Multi-layer perceptron on images: `layers` linear layers with relu, then a linear classifier with cross entropy. One
// bucket a layer.
#include "core/model/families/common/family.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    {size_key("layers", {1, kMostLayers}, "Hidden layers."),
     size_key("hidden", {1, 1 << 20}, "Width of a hidden layer."),
     size_key("inputs", {1, kMostSize}, "Input features."), size_key("classes", {2, kMostSize}, "Classes of images."),
     word_key("precision", {"fp32"}, "fp32.")},
    training_keys(),
    {},
    {{"layers", 3}, {"hidden", 48}, {"inputs", 64}, {"classes", 10}}};

struct Sizes {
  explicit Sizes(const WorkloadOptions& w)
      : batch(w.batch),
        layers(w.keys.integer("layers")),
        hidden(w.keys.integer("hidden")),
        inputs(w.keys.integer("inputs")),
        classes(w.keys.integer("classes")),
        precision(w.precision) {}
  std::int64_t batch, layers, hidden, inputs, classes;
  DType precision;
};

void check(const Sizes& w) {
  require_size("layers", w.layers, kMostLayers);
  require_size("inputs", w.inputs, kMostSize);
  require_size("hidden", w.hidden, kMostSize);
  require_size("classes", w.classes, kMostSize);
  require_product("inputs, hidden", {w.inputs, w.hidden});
  require_product("hidden", {w.hidden, w.hidden});
  require_product("hidden, classes", {w.hidden, w.classes});
  require_product("batch, inputs", {w.batch, w.inputs});
  require_product("batch, hidden", {w.batch, w.hidden});
  require_product("batch, classes", {w.batch, w.classes});
}

Network mlp(const WorkloadOptions& options) {
  const Sizes w(options);
  check(w);
  require_option(options.recompute == "none", "recompute", "a perceptron has no blocks to recompute", "allowed: none");
  require_option(w.precision == DType::F32, "precision", "a perceptron trains in fp32", "allowed: fp32");
  NetworkBuilder n("mlp", w.precision);
  Signal x = n.batch("inputs", Shape({w.batch, w.inputs}, w.precision));
  const Signal targets = n.batch("targets", Shape({w.batch}, DType::I64), w.classes);
  n.load("images", w.precision, {w.batch, w.inputs}, x.shape.bytes() + targets.shape.bytes());
  for (std::int64_t i = 0; i < w.layers; ++i)
    x = n.module(indexed("layer", i), "layer", [&](ModuleScope& m) {
      m.output(m.activation("activation", m.linear("relu", m.in("input", x), w.hidden), "relu"));
    });
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId logits = m.linear("output", m.in("input", x), w.classes);
    m.output(m.cross_entropy("loss", logits, m.in("targets", targets)));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(mlp, mlp, kKeys, "Multi-layer perceptron with relu, trained to classify images")
