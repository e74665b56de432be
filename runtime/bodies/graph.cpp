// A batch's part of a graph: core/step/graph_inputs.hpp says what each body reads and writes.
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/bodies/common/load.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/graph_data.hpp"

namespace tandem {
namespace {

const GraphData& graph_of(const BodyCall& call) {
  const auto* graph = dynamic_cast<const GraphData*>(&call.data);
  if (graph == nullptr)
    throw DeviceError("data.pipeline: a real run draws neighbours of data.graph, and the scenario names none");
  return *graph;
}

std::int64_t* integers(std::byte* bytes) { return reinterpret_cast<std::int64_t*>(bytes); }

std::int64_t sample(BodyCall& call) {
  std::vector<std::int64_t*> neighbours;
  for (std::size_t i = 0; i + 1 < call.writes.size(); ++i) neighbours.push_back(integers(call.writes[i]));
  graph_of(call).sample(key_of(call), neighbours, integers(call.writes.back()));
  return 0;
}

std::int64_t gather(BodyCall& call) {
  const auto nodes = static_cast<std::size_t>(call.work.sizes.front());
  graph_of(call).gather({integers(call.reads.front()), nodes}, call.work.type, call.writes.front());
  return 0;
}

constexpr BodyEntry kBodies[] = {{"graph.sample", sample}, {"graph.gather", gather}};

}  // namespace

std::span<const BodyEntry> graph_bodies() { return kBodies; }

}  // namespace tandem
