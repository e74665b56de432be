#include "plan/bound.hpp"

#include <algorithm>

#include "analysis/compulsory.hpp"
#include "analysis/lower_bound.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// Steps repeat each other: the second is like those after it.
constexpr std::int32_t kBoundedSteps = 2;

std::int64_t persistent_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.persistent) bytes += tensor.bytes;
  return bytes;
}

// What a device must compute of the second step's micro-batches, forward and backward.
struct Passes {
  double all_s = 0, first_s = 0;  // of the first micro-batch
};
Passes passes_of(const Graph& graph, const Scenario& scenario) {
  const CostModel cost(scenario.machine);
  const BoundRates rates = rates_of(scenario, /*with_truth=*/true);
  Passes passes;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != kBoundedSteps - 1 || op.engines != engine_bit(Engine::Compute)) continue;
    if (op.phase != Phase::Forward && op.phase != Phase::Recompute && op.phase != Phase::Backward) continue;
    const double s = run_s(graph, op, Engine::Compute, cost, rates);
    passes.all_s += s;
    if (op.micro_batch == 0) passes.first_s += s;
  }
  return passes;
}

}  // namespace

StepBound step_bound(Scenario scenario) {
  scenario.steps = kBoundedSteps;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  StepBound bound;
  double before_s = 0;  // a micro-batch's way through the stages before, and back
  for (Rank stage = 0; stage < std::max<std::int64_t>(scenario.parallel.pipeline, 1); ++stage) {
    Graph graph;
    const auto source = family->make(scenario, {}, rank_at(scenario, {.stage = stage}));
    source->prologue(graph);
    for (std::int32_t step = 0; step < kBoundedSteps; ++step) source->append_step(graph, 0);
    const LowerBound least = lower_bound(graph, scenario);
    bound.step_s = std::max(bound.step_s, least.overall());
    bound.compute_s = std::max(bound.compute_s, least.step_s.at("compute"));
    bound.bytes = std::max(bound.bytes, persistent_bytes(graph));
    if (scenario.parallel.pipeline == 1 || scenario.parallel.chunks > 1) continue;
    // A stage begins when the first micro-batch has come through all before it. The step ends when the last one's
    // gradient has gone back through them.
    const Passes passes = passes_of(graph, scenario);
    bound.step_s = std::max(bound.step_s, before_s + passes.all_s);
    before_s += passes.first_s;
  }
  return bound;
}

}  // namespace tandem
