#include "core/policies/common/layers.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

bool in_first_pass(const Graph& graph, const Op& op) {
  return op.step <= graph.era().first_step && op.micro_batch == 0;
}

// Of the layer's weights that its update does not write.
std::int64_t frozen_copy_ns(const Graph& graph, const CostModel& estimate, const Op& op, const Bucket& bucket) {
  std::int64_t ns = 0;
  for (const ValueId read : op.reads) {
    const Tensor& t = graph.tensor_of(read);
    if (t.role == Role::Parameter && t.layer == op.layer &&
        graph.value(read).tensor != graph.value(bucket.parameter).tensor)
      ns += estimate.copy_ns(Engine::H2D, t.bytes);
  }
  return ns;
}

}  // namespace

std::vector<LayerTimes> layer_times(const View& view, const std::vector<Bucket>& buckets) {
  return layer_times(view.graph(), view.estimate(), buckets);
}

std::vector<LayerTimes> layer_times(const Graph& graph, const CostModel& estimate, const std::vector<Bucket>& buckets) {
  std::vector<LayerTimes> layers;
  for (const Bucket& bucket : buckets) {
    CHECK(bucket.index == std::ssize(layers), "buckets in forward order", bucket.index, layers.size());
    const WorkId update = graph.op(bucket.optimizer).work;
    const Op& backward = graph.op(graph.value(bucket.gradient).producer);
    layers.push_back({.backward_ns = estimate.run_ns(graph, backward.work, backward.engine),
                      .gradient_copy_ns = estimate.copy_ns(Engine::D2H, graph.value(bucket.gradient).bytes),
                      .cpu_update_ns = estimate.run_ns(graph, update, Engine::CpuOptimizer),
                      .device_update_ns = estimate.run_ns(graph, update, Engine::Compute),
                      .parameter_copy_ns = estimate.copy_ns(Engine::H2D, graph.value(bucket.parameter).bytes)});
  }
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (!in_first_pass(graph, op)) continue;
    if (op.layer == kNone || op.layer >= std::ssize(layers)) continue;
    LayerTimes& layer = layers[static_cast<std::size_t>(op.layer)];
    if (op.phase == Phase::Forward) {
      layer.forward_ns = estimate.run_ns(graph, op.work, op.engine);
      layer.parameter_copy_ns += frozen_copy_ns(graph, estimate, op, buckets[static_cast<std::size_t>(op.layer)]);
    }
    if (op.phase == Phase::Recompute) layer.recompute_ns = estimate.run_ns(graph, op.work, op.engine);
  }
  return layers;
}

std::size_t layers_that_fit(const View& view, const std::vector<Bucket>& buckets, std::int64_t beside_each) {
  CHECK(beside_each >= 0, beside_each);
  const Graph& graph = view.graph();
  std::int64_t widest = 0, saved = 0;
  for (OpId op : view.compute_program()) {
    if (!in_first_pass(graph, graph.op(op))) break;
    widest = std::max(widest, view.missing_bytes(op));
    if (graph.op(op).phase == Phase::Forward)
      for (const Write& write : graph.op(op).writes) saved += graph.value(write.value).bytes;
  }
  // Two widest ops: the one that runs, and what is prefetched or leaving beside it.
  std::int64_t left = view.capacity_bytes(Tier::Device) - 2 * widest - saved;
  std::size_t most = 0;
  for (const Bucket& bucket : buckets) {
    left -= beside_each;
    for (ValueId read : graph.op(bucket.optimizer).reads) left -= graph.value(read).bytes;
    if (left < 0) break;
    ++most;
  }
  return most;
}

}  // namespace tandem
