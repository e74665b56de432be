#include "core/policies/protrain/chunk_search.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/check.hpp"
#include "core/machine/cost_model.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/layers.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/policies/protrain/chunks.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// Steps from none to all of the blocks, or of the chunks, that are tried; fewer of deep networks, whose graphs take
// long.
constexpr std::int64_t kBlockTries = 12, kChunkTries = 48, kLeastTries = 4, kLayersTried = 4000;

// From none to `most`, in about equal steps.
std::vector<std::int64_t> counts(std::int64_t most, std::int64_t tries) {
  tries = std::min(std::clamp(kLayersTried / std::max<std::int64_t>(most, 1), kLeastTries, tries), most);
  std::vector<std::int64_t> all{0};
  for (std::int64_t i = 1; i <= tries; ++i) all.push_back(most * i / tries);
  CHECK(all.back() == most && std::is_sorted(all.begin(), all.end()), "all of them are one of the tries", all.back(),
        most);
  return all;
}

class Search {
 public:
  Search(const Scenario& scenario, const GivenChunks& given)
      : scenario_(scenario),
        given_(given),
        blocks_(blocks_of(scenario)),
        capacity_bytes_(tier_capacity_bytes(scenario, Tier::Device)) {}

  ChunkLayout run() {
    if (given_.activations || scenario_.workload.recompute != "none" || blocks_.empty()) {
      try_activations(given_.activations);
    } else {
      const auto all = counts(std::ssize(blocks_), kBlockTries);
      for (std::int64_t swapped : all)
        for (std::int64_t recomputed : all)
          if (swapped + recomputed <= std::ssize(blocks_)) try_activations(BlockActivations{swapped, recomputed});
    }
    CHECK(most_left_ > std::numeric_limits<std::int64_t>::min(), "no layout was tried", blocks_.size());
    return best_.fits ? best_ : smallest_;
  }

 private:
  void try_activations(const std::optional<BlockActivations>& choice) {
    const Graph graph = first_step(scenario_, choice);
    offloaded_ = first_blocks(blocks_, choice ? choice->offload : 0);
    Buckets buckets;
    buckets.follow(graph);
    const auto& first = buckets.first();
    // A cost model remembers costs by work, and each graph numbers its own.
    const CostModel estimate(scenario_.machine);
    std::vector<LayerTimes> layers = layer_times(graph, estimate, first);
    add_swaps(graph, estimate, layers);
    CHECK(layers.size() == first.size(), "a layer is a bucket", layers.size(), first.size());
    const StepShape shape{scenario_.workload.micro_batches, !first.empty() && first.front().gradient_norm != kNone};
    auto persistent = counts(std::ssize(first), kChunkTries);
    if (given_.persistent) persistent = {std::min(*given_.persistent, std::ssize(first))};
    for (std::size_t i = persistent.size(); i-- > 0;)
      try_chunks(graph, {persistent[i], 1, choice, 0, false}, layers, shape);
    note_smallest(graph, {persistent.front(), given_.buffers.value_or(1), choice, 0, false}, layers, shape);
  }

  void add_swaps(const Graph& graph, const CostModel& estimate, std::vector<LayerTimes>& layers) const {
    for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
      const Op& op = graph.op(id);
      if (op.phase != Phase::Backward || op.micro_batch > 0 || op.layer >= std::ssize(layers)) continue;
      if (!std::binary_search(offloaded_.begin(), offloaded_.end(), op.layer)) continue;
      LayerTimes& times = layers[static_cast<std::size_t>(op.layer)];
      for (ValueId value : saved_for(graph, op)) {
        times.saved_out_ns += estimate.copy_ns(Engine::D2H, graph.value(value).bytes);
        times.saved_in_ns += estimate.copy_ns(Engine::H2D, graph.value(value).bytes);
      }
    }
  }

  // With as many buffers as there is room for.
  void try_chunks(const Graph& graph, ChunkLayout layout, const std::vector<LayerTimes>& layers,
                  const StepShape& shape) {
    const auto resident = static_cast<std::int32_t>(layout.persistent);
    const auto most = most_buffers(graph, capacity_bytes_, offloaded_, resident);
    if (!most) return;
    const std::int64_t streamed = std::max<std::int64_t>(std::ssize(layers) - layout.persistent, 0);
    layout.buffers = given_.buffers.value_or(std::max<std::int64_t>(*most, 1));
    if (*most < std::min(layout.buffers, streamed)) return;
    CHECK(layout.persistent <= std::ssize(layers) && layout.buffers >= 1, layout.persistent, layers.size(),
          layout.buffers);
    layout.step_ns = estimated_ns(layout, layers, shape);
    layout.fits = true;
    if (!best_.fits || layout.step_ns < best_.step_ns) best_ = layout;
  }

  static std::int64_t estimated_ns(const ChunkLayout& layout, const std::vector<LayerTimes>& layers,
                                   const StepShape& shape) {
    return chunked_step_ns(layers, shape,
                           {static_cast<std::size_t>(layout.persistent), static_cast<std::size_t>(layout.buffers)});
  }

  void note_smallest(const Graph& graph, const ChunkLayout& layout, const std::vector<LayerTimes>& layers,
                     const StepShape& shape) {
    const std::int64_t left = bytes_left(graph, capacity_bytes_, offloaded_,
                                         {static_cast<std::int32_t>(layout.persistent), 0, layout.buffers});
    if (left <= most_left_) return;
    most_left_ = left;
    smallest_ = layout;
    smallest_.step_ns = estimated_ns(layout, layers, shape);
  }

  const Scenario& scenario_;
  const GivenChunks& given_;
  std::vector<std::int32_t> blocks_, offloaded_;
  std::int64_t capacity_bytes_;
  ChunkLayout best_, smallest_;
  std::int64_t most_left_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

ChunkLayout choose_chunks(const Scenario& scenario, const GivenChunks& given) { return Search(scenario, given).run(); }

}  // namespace tandem
