#include "core/workloads/common/recomputation.hpp"

#include <algorithm>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scenario/capacity.hpp"
#include "core/workloads/common/checkpoint_chain.hpp"

namespace tandem {
namespace {

std::vector<bool> recomputed_stages(const TrainingPlan& plan, const BlockActivations& choice) {
  std::vector<bool> recomputes;
  std::int64_t block = 0;
  for (const StageSpec& stage : plan.stages) {
    const std::int64_t index = stage.recomputable ? block++ : kNone;
    recomputes.push_back(index >= choice.offload && index - choice.offload < choice.recompute);
  }
  return recomputes;
}

// Stages in a row that recompute, in segments of at most `every`.
std::vector<std::size_t> segment_begins(const std::vector<bool>& recomputes, std::int64_t every) {
  CHECK(every >= 1, every);
  std::vector<std::size_t> begins;
  std::size_t first = 0;  // of the segment
  for (std::size_t i = 0; i < recomputes.size(); ++i) {
    const std::size_t next = i + 1;
    const bool full = static_cast<std::int64_t>(next - first) == every;
    const bool ends = recomputes[i] && (full || next == recomputes.size() || !recomputes[next]);
    begins.push_back(ends ? first : next);
    if (ends || !recomputes[i]) first = next;
  }
  return begins;
}

std::vector<ChainStage> chain_of(const TrainingPlan& plan, const HardwareProfile& machine) {
  const CostModel estimate(machine);
  Graph works;
  const auto workspace = [&](OpSpecIndex op) {
    return op == kNone ? 0 : plan.ops[static_cast<std::size_t>(op)].workspace_bytes;
  };
  std::vector<ChainStage> chain;
  for (const StageSpec& s : plan.stages) {
    ChainStage stage{.recomputable = s.recomputable, .output_bytes = s.output_bytes()};
    for (const TensorSpec& saved : s.saved) stage.saved_bytes += saved.bytes;
    for (const PortSpec& port : s.inputs)
      if (port.from == PortSpec::From::Stage && port.backward_reads) stage.input_bytes += plan.output_of(port).bytes;
    stage.forward_workspace = std::max(workspace(s.forward), workspace(s.recompute));
    stage.light_workspace = workspace(s.forward_light);
    stage.backward_workspace = std::max(workspace(s.backward), workspace(s.backward_accumulate));
    if (s.recomputable)
      stage.forward_ns =
          estimate.run_ns(works, works.add_work(plan.ops[static_cast<std::size_t>(s.recompute)].work), Engine::Compute);
    chain.push_back(stage);
  }
  return chain;
}

// There all the time, as a chain sees it: a batch, and what tied stages pass past those between them.
std::int64_t always_there(const TrainingPlan& plan) {
  std::int64_t bytes = plan.batch.bytes();
  for (const StageSpec& stage : plan.stages) bytes += stage.contribution_bytes();
  return bytes;
}

// Half of the largest value's size is left for holes between values.
std::int64_t lost_in_holes(const TrainingPlan& plan) {
  std::int64_t largest = 0;
  for (const StageSpec& stage : plan.stages) {
    largest = std::max({largest, stage.output_bytes(), stage.contribution_bytes()});
    for (const TensorSpec& saved : stage.saved) largest = std::max(largest, saved.bytes);
  }
  return largest / 2;
}

// See activation_bytes in the schema; at least `least`.
std::int64_t default_budget(const TrainingPlan& plan, const Scenario& scenario, std::int64_t least) {
  std::int64_t elements = 0, largest = 0, state_bytes = 0;
  for (const StageSpec& stage : plan.stages) {
    elements += stage.elements;
    largest = std::max(largest, stage.elements);
    for (const StateSpec& state : plan.states) state_bytes += state.bytes(stage.elements);
  }
  // Of what ranks divide, a part of all layers, and all of those that are at work: two parameters, a gradient.
  const std::string& partition = scenario.workload.partition;
  const std::int64_t parts = partition == "none" ? 1 : scenario.workload.devices;
  std::int64_t held = 2 * elements;
  if (parts > 1)
    held = elements / parts + (partition == "states" ? elements + largest : elements / parts + 3 * largest);
  state_bytes /= parts;
  const std::int64_t left = tier_capacity_bytes(scenario, Tier::Device) - held * size_of(plan.precision) -
                            always_there(plan) - lost_in_holes(plan);
  return std::max(left - state_bytes >= least ? left - state_bytes : left, least);
}

Recomputation optimal(const TrainingPlan& plan, const Scenario& scenario) {
  const std::vector<ChainStage> chain = chain_of(plan, scenario.machine);
  const std::int64_t least = least_budget(chain), given = scenario.workload.activation_bytes;
  if (given > 0 && given < least + always_there(plan))
    throw ConfigError("workload.activation_bytes: " + std::to_string(given) +
                      " bytes are too few for any choice of blocks that recompute; allowed: at least " +
                      std::to_string(least + always_there(plan)) + " bytes");
  const std::int64_t budget = given > 0 ? given - always_there(plan) : default_budget(plan, scenario, least);
  const std::optional<Checkpoints> found = optimal_checkpoints(chain, budget);
  CHECK(found && found->segment.size() == chain.size(), "the least budget is too little", budget, least, chain.size());
  const Checkpoints& chosen = *found;
  Recomputation out;
  for (std::size_t i = 0; i < chosen.segment.size(); ++i) {
    const std::int32_t segment = chosen.segment[i];
    const bool last = segment != kNone && (i + 1 == chosen.segment.size() || chosen.segment[i + 1] != segment);
    out.recomputes.push_back(segment != kNone);
    out.from.push_back(last ? static_cast<std::size_t>(segment) : i + 1);
  }
  return out;
}

}  // namespace

Recomputation choose_recomputation(const TrainingPlan& plan, const Scenario& scenario, const GraphRequest& request) {
  const WorkloadOptions& w = scenario.workload;
  if (!request.activations && w.recompute == "optimal") return optimal(plan, scenario);
  const auto all = static_cast<std::int64_t>(plan.stages.size());
  Recomputation out;
  out.recomputes =
      recomputed_stages(plan, request.activations.value_or(BlockActivations{0, w.recompute == "block" ? all : 0}));
  out.from = segment_begins(out.recomputes, w.checkpoint_every * plan.block_stages);
  return out;
}

}  // namespace tandem
