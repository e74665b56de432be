// GraphSAGE (Hamilton et al. 2017, arXiv 1706.02216) over sampled blocks: a layer makes its targets' values of their
// own and of their neighbours' mean; the targets of one layer are the sources of the next. Targets are the first of
// their layer's sources.
#include "core/model/families/common/family.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostHops = 16;

const FamilyKeys kKeys = {
    {size_key("inputs", {1, kMostSize}, "Features of a node."), size_key("hidden", {1, 1 << 20}, "Width of a layer."),
     size_key("classes", {2, kMostSize}, "Classes of a node."),
     sizes_key("fanouts", 1, kMostHops, {1, 1 << 16}, {15, 10, 5},
               "Neighbours that are sampled for a target, from the first layer to the last; one layer each.")},
    training_keys(),
    {},
    {{"inputs", 19}, {"hidden", 24}, {"classes", 7}, {"fanouts", std::vector<std::int64_t>{3, 2}}}};

// Nodes that each layer reads, and those of the last one's result: the batch.
std::vector<std::int64_t> nodes_of(const WorkloadOptions& w) {
  const std::vector<std::int64_t>& fanouts = w.keys.integers("fanouts");
  std::vector<std::int64_t> nodes(fanouts.size() + 1, w.batch);
  for (std::size_t i = fanouts.size(); i-- > 0;) {
    nodes[i] = nodes[i + 1] * (1 + fanouts[i]);
    require_product("batch, fanouts, hidden", {nodes[i], 2 * w.keys.integer("hidden")});
  }
  require_product("batch, fanouts, inputs", {nodes.front(), 2 * w.keys.integer("inputs")});
  require_product("hidden", {w.keys.integer("hidden"), 2 * w.keys.integer("hidden")});
  return nodes;
}

Network gnn(const WorkloadOptions& w) {
  const std::vector<std::int64_t> nodes = nodes_of(w), fanouts = w.keys.integers("fanouts");
  const std::int64_t hidden = w.keys.integer("hidden"), classes = w.keys.integer("classes");
  NetworkBuilder n("gnn", w.precision);
  Signal x = n.batch("features", Shape({nodes.front(), w.keys.integer("inputs")}, w.precision));
  std::vector<Signal> neighbours;
  for (std::size_t i = 0; i < fanouts.size(); ++i)
    neighbours.push_back(
        n.batch("neighbours" + std::to_string(i), Shape({nodes[i + 1], fanouts[i]}, DType::I64), nodes[i]));
  const Signal labels = n.batch("labels", Shape({w.batch}, DType::I64), classes);
  for (std::size_t i = 0; i < fanouts.size(); ++i)
    x = n.module("layer" + std::to_string(i), "layer", [&](ModuleScope& m) {
      const LocalId source = m.in("source", x);
      const LocalId own = m.call("own", "rows", {source}, {{"count", nodes[i + 1]}});
      const LocalId mean = m.call("mean", "aggregate", {source, m.in("neighbours", neighbours[i])}, {});
      const LocalId both = m.call("both", "concat", {own, mean}, {{"axis", std::int64_t{1}}});
      m.output(m.activation("activation", m.linear("relu", both, hidden), "relu"));
    });
  n.module("head", "head", [&](ModuleScope& m) {
    m.output(m.cross_entropy("loss", m.linear("classes", m.in("input", x), classes), m.in("labels", labels)));
  });
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(gnn, gnn, kKeys, "Graph network over sampled neighbours (GraphSAGE), trained to classify nodes")
