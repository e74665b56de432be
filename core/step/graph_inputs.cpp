#include "core/step/graph_inputs.hpp"

#include <algorithm>
#include <utility>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/inputs.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kUsualDegree = 50;

std::optional<std::size_t> place_of(const Network& network, const std::string& name) {
  for (std::size_t i = 0; i < network.batch.size(); ++i)
    if (network.batch[i].name == name) return i;
  return std::nullopt;
}

void refuse_what_is_of_media(const Scenario& scenario) {
  const PipelineOptions& pipeline = scenario.pipeline;
  const auto refuse = [&](bool given, const char* key, const char* problem, const char* allowed) {
    if (given) throw ConfigError(std::string(key) + ": " + problem + "; allowed: " + allowed);
  };
  refuse(!scenario.data_manifest.empty(), "data.manifest", "samples of a graph are its nodes", "data.graph");
  refuse(pipeline.remote_workers > 0, "data.pipeline.remote_workers", "neighbours are drawn on this host alone", "0");
  refuse(pipeline.decode_on_device, "data.pipeline.decode", "nothing of a graph is decoded", "cpu");
  refuse(pipeline.transform_on_device, "data.pipeline.transform", "features are gathered where they lie, on the host",
         "cpu");
  refuse(pipeline.decoded_cache_bytes > 0, "data.pipeline.cache.decoded", "nothing of a graph is decoded", "0B");
}

// Of one target, those that are drawn: a node of few neighbours has no more than those.
std::int64_t drawn_of_target(const GraphShape& shape, std::int64_t degree) {
  std::int64_t nodes = 1;
  for (std::size_t i = shape.fanouts.size(); i-- > 0;) nodes = counted({nodes, 1 + std::min(shape.fanouts[i], degree)});
  return nodes - 1;
}

InputSpec sampling(const Network& network, const GraphShape& shape, const Scenario& scenario, BatchSpec& batch) {
  const std::int64_t sources = shape.nodes().front();
  InputSpec sample;
  sample.name = "graph.sample";
  std::int64_t bytes = sources * size_of(DType::I64);
  batch.tensors.push_back({"graph.nodes", DType::I64, bytes});
  for (std::size_t i = 0; i < shape.fanouts.size(); ++i) {
    sample.writes.push_back(static_cast<std::int32_t>(shape.neighbours + i));
    bytes += network.batch[shape.neighbours + i].shape.bytes();
  }
  sample.writes.push_back(static_cast<std::int32_t>(batch.tensors.size()) - 1);
  sample.work.body = "graph.sample";
  sample.work.type = DType::I64;
  sample.work.sizes = {shape.batch};
  sample.work.sizes.insert(sample.work.sizes.end(), shape.fanouts.begin(), shape.fanouts.end());
  // An item is a target with all that is drawn for it.
  const std::int64_t drawn = counted({shape.batch, drawn_of_target(shape, graph_degree(scenario))});
  sample.work.kernels = {stage_kernel(scenario, "sample_neighbours", shape.batch, drawn, bytes)};
  return sample;
}

// As from a cache: a target's rows are copied from where they lie, one after another.
InputSpec gathering(const Network& network, const GraphShape& shape, const Scenario& scenario, std::int32_t nodes) {
  const Shape& features = network.batch[shape.features].shape;
  InputSpec gather;
  gather.name = "graph.gather";
  gather.reads = {nodes};
  gather.writes = {static_cast<std::int32_t>(shape.features)};
  gather.work.body = "graph.gather";
  gather.work.type = features.type;
  gather.work.sizes = {features.dims.front(), shape.inputs};
  gather.work.kernels = {stage_kernel(scenario, "cache_copy", shape.batch, features.bytes(), 2 * features.bytes())};
  return gather;
}

}  // namespace

std::vector<std::int64_t> GraphShape::nodes() const {
  std::vector<std::int64_t> nodes(fanouts.size() + 1, batch);
  for (std::size_t i = fanouts.size(); i-- > 0;) nodes[i] = nodes[i + 1] * (1 + fanouts[i]);
  return nodes;
}

std::optional<GraphShape> graph_shape(const Network& network) {
  const auto features = place_of(network, "features"), labels = place_of(network, "labels"),
             first = place_of(network, "neighbours0");
  if (!features || !labels || !first) return std::nullopt;
  GraphShape shape;
  shape.features = *features, shape.neighbours = *first, shape.labels = *labels;
  shape.batch = network.batch[*labels].shape.elements();
  shape.classes = network.batch[*labels].below;
  shape.inputs = network.batch[*features].shape.columns();
  for (std::size_t i = *first;
       i < network.batch.size() && network.batch[i].name == "neighbours" + std::to_string(i - *first); ++i)
    shape.fanouts.push_back(network.batch[i].shape.dims.back());
  return shape;
}

std::int64_t graph_degree(const Scenario& scenario) {
  return scenario.pipeline.graph_degree > 0 ? scenario.pipeline.graph_degree : kUsualDegree;
}

void add_graph_inputs(const Network& network, const GraphShape& shape, const Scenario& scenario, BatchSpec& batch) {
  refuse_what_is_of_media(scenario);
  InputSpec sample = sampling(network, shape, scenario, batch);
  InputSpec gather = gathering(network, shape, scenario, sample.writes.back());
  batch.inputs.push_back(std::move(sample));
  batch.inputs.push_back(std::move(gather));
  batch.load.body = "samples.load";
  batch.load.sizes = {static_cast<std::int64_t>(shape.labels)};
  batch.load.kernels = {memory_kernel(network.batch[shape.labels].shape.bytes())};
}

}  // namespace tandem
