#include "core/transforms/recompute/recompute.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/context.hpp"
#include "core/step/passes.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/recompute/checkpoint_chain.hpp"

namespace tandem {
namespace {

struct Recomputation {
  std::vector<bool> recomputes;  // by stage
  // By stage: the first that is recomputed, up to this one, when the backward comes to it; the next one: none is.
  std::vector<std::size_t> from;
};

std::vector<bool> recomputed_stages(const TrainingPlan& plan, const BlockActivations& choice) {
  std::vector<bool> recomputes;
  std::int64_t block = -1;
  for (const StageSpec& stage : plan.stages) {
    block += stage.recomputable && !stage.continues;
    const std::int64_t index = stage.recomputable ? block : kNone;
    recomputes.push_back(index >= choice.offload && index - choice.offload < choice.recompute);
  }
  return recomputes;
}

// Stages in a row that recompute, in segments of at most `every` modules.
std::vector<std::size_t> segment_begins(const TrainingPlan& plan, const std::vector<bool>& recomputes,
                                        std::int64_t every) {
  CHECK(every >= 1, every);
  std::vector<std::size_t> begins;
  std::size_t first = 0;  // of the segment
  std::int64_t modules = 0;
  for (std::size_t i = 0; i < recomputes.size(); ++i) {
    const std::size_t next = i + 1;
    modules += i == first || !plan.stages[i].continues;
    const bool is_cut = next < recomputes.size() && plan.stages[next].continues;
    const bool full = modules == every && !is_cut;
    const bool ends = recomputes[i] && (full || next == recomputes.size() || !recomputes[next]);
    begins.push_back(ends ? first : next);
    if (ends || !recomputes[i]) first = next, modules = 0;
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
  const std::int64_t parts = state_parts(scenario);
  std::int64_t held = 2 * elements;
  if (parts > 1)
    held = elements / parts + (partition == "parameters" ? elements / parts + 3 * largest : elements + largest);
  if (parts > 1 && partition == "optimizer") held += elements;  // gradients are whole beside the part that follows
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

Recomputation of_blocks(const TrainingPlan& plan, const BlockActivations& choice, std::int64_t every) {
  Recomputation out;
  out.recomputes = recomputed_stages(plan, choice);
  out.from = segment_begins(plan, out.recomputes, every * plan.block_stages);
  return out;
}

class Recompute final : public StepTransform {
 public:
  // `except_last`: the last micro-batch keeps all (torchgpipe: Kim et al., 2020, section 3.2.2).
  Recompute(StepContext& context, Recomputation choice, bool except_last = false)
      : context_(context), choice_(std::move(choice)), except_last_(except_last) {
    CHECK(choice_.recomputes.size() == context.stage_count() && choice_.from.size() == context.stage_count(),
          choice_.recomputes.size(), choice_.from.size(), context.stage_count());
    context.recomputes = choice_.recomputes;
  }
  void begin_pass(Phase) override { look_at_micro_batch(); }
  void before_backward(Graph& graph, std::size_t index, PassesPart& passes) override {
    look_at_micro_batch();
    if (!keeps_) passes.recompute(graph, choice_.from[index], index);
  }

 private:
  void look_at_micro_batch() {
    const bool keeps = except_last_ && context_.micro_batch + 1 == context_.options.micro_batches;
    if (keeps == keeps_) return;
    keeps_ = keeps;
    context_.recomputes = keeps ? std::vector<bool>(choice_.recomputes.size(), false) : choice_.recomputes;
  }

  StepContext& context_;
  const Recomputation choice_;
  const bool except_last_;
  bool keeps_ = false;  // all, of the micro-batch in hand
};

class BlocksRewrite final : public Rewrite {
 public:
  BlocksRewrite(const BlockActivations& choice, std::int64_t every, bool except_last)
      : choice_(choice), every_(every), except_last_(except_last) {}
  std::string_view name() const override { return "recompute"; }
  Order order() const override { return Order::Passes; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<Recompute>(context, of_blocks(context.plan(), choice_, every_), except_last_);
  }

 private:
  BlockActivations choice_;
  std::int64_t every_;
  bool except_last_;
};

// Least recomputing in a given memory. Throws ConfigError where nothing fits workload.activation_bytes.
class OptimalRewrite final : public Rewrite {
 public:
  explicit OptimalRewrite(const Scenario& scenario) : scenario_(scenario) {}
  std::string_view name() const override { return "recompute"; }
  Order order() const override { return Order::Passes; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<Recompute>(context, optimal(context.plan(), scenario_));
  }

 private:
  Scenario scenario_;
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites& of_policy) {
  const WorkloadOptions& w = scenario.workload;
  if (w.recompute == "none" || find_rewrite(of_policy, "recompute") != nullptr) return nullptr;
  if (w.recompute == "optimal") return std::make_shared<OptimalRewrite>(scenario);
  constexpr std::int64_t kAll = std::int64_t{1} << 40;
  return std::make_shared<BlocksRewrite>(BlockActivations{.offload = 0, .recompute = kAll}, w.checkpoint_every,
                                         w.recompute == "except_last");
}

}  // namespace

bool recomputes_blocks(const WorkloadOptions& workload) {
  return workload.recompute == "block" || workload.recompute == "except_last";
}

std::shared_ptr<const Rewrite> recompute_blocks(const BlockActivations& choice, std::int64_t every) {
  return std::make_shared<BlocksRewrite>(choice, every, /*except_last=*/false);
}

Rewrites rewrites_of(const std::optional<BlockActivations>& choice, std::int64_t every) {
  return choice ? Rewrites{recompute_blocks(*choice, every)} : Rewrites{};
}

}  // namespace tandem

TANDEM_TRANSFORM(recompute, of_scenario,
                 "Keep only the input of each block and run its forward again before its backward",
                 "workload.recompute: block, except_last or optimal, policy.recompute_blocks")
