#include "core/policies/common/first_step.hpp"

#include <algorithm>
#include <limits>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {

Graph first_step(Scenario scenario, std::optional<BlockActivations> choice) {
  scenario.workload.micro_batches = std::min(scenario.workload.micro_batches, kFirstStepMicroBatches);
  Graph graph;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  CHECK(family != nullptr, scenario.workload.family);
  const auto source = family->make(scenario, rewrites_of(choice, scenario.workload.checkpoint_every));
  source->prologue(graph);
  source->append_step(graph, 0);
  return graph;
}

void require_updates(const Graph& step, const Scenario& scenario) {
  for (OpId id = step.era().first_op; id < step.op_count(); ++id)
    if (step.op(id).phase == Phase::OptimizerStep) return;
  throw ConfigError("workload.family: " + scenario.workload.family + " trains nothing, and policy " +
                    scenario.policy.name + " lays out memory by updates; allowed: a family that trains");
}

std::vector<std::int32_t> blocks_of(const Scenario& scenario) {
  const Graph graph = first_step(scenario, BlockActivations{0, std::numeric_limits<std::int64_t>::max()});
  std::vector<std::int32_t> layers;
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::Recompute && graph.in_first_step(op) && op.micro_batch == 0)
      layers.push_back(op.layer);
  std::sort(layers.begin(), layers.end());
  CHECK(std::adjacent_find(layers.begin(), layers.end()) == layers.end(), "a block is recomputed once a micro-batch");
  return layers;
}

std::vector<std::int32_t> first_blocks(const std::vector<std::int32_t>& blocks, std::int64_t count) {
  CHECK(count >= 0, count);
  const auto end = std::min(blocks.size(), static_cast<std::size_t>(count));
  return {blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace tandem
