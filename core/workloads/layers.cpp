// A stack given by measured times: what a run looks like to a scheduler when only sizes and times are known. It has no
// bodies: it is simulated only. Per layer: 16-bit parameters, a gradient of the same size, six times as much state.
#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/passes.hpp"
#include "core/step/network_plan.hpp"
#include "core/step/training_source.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    {size_key("layers", {1, kMostLayers}, "Layers, one like another."),
     bytes_key("layer_bytes", "Parameters of one layer."), time_key("forward", "1ns", "Forward of one layer."),
     time_key("backward", "1ns", "Backward of one layer."),
     time_key("optimizer", "1ns", "Optimizer step of one layer.")},
    {"micro_batches", "precision", "devices", "partition"},
    {},
    {{"layers", 3}, {"layer_bytes", 1 << 20}, {"forward", 1000000}, {"backward", 2000000}, {"optimizer", 3000000}}};

constexpr std::int64_t kActivationBytes = 64;  // negligible, but there
constexpr std::int64_t kStatesPerElement = 3;  // fp32 master copy and two moments

// How a backward is divided is not known: half of it makes gradients of weights, as in a layer of matrix products. The
// other half takes its time in the first layer as well.
void add_halves(std::int32_t layer, OpSpecIndex of_inputs, OpSpecIndex of_weights, StageSpec& stage) {
  const HalfOperand gradient{OperandKind::OutputGradient};
  BackwardHalf &inputs = stage.backward_inputs, &weights = stage.backward_weights;
  inputs.op = of_inputs;
  weights.op = weights.accumulate = of_weights;
  inputs.reads = {{OperandKind::Weights}};
  for (BackwardHalf* both : {&inputs, &weights})
    if (!stage.outputs.empty()) both->reads.push_back(gradient);
  weights.reads.push_back({stage.outputs.empty() ? OperandKind::Input : OperandKind::Output});
  if (layer > 0) inputs.writes = {{OperandKind::InputGradient}};
  weights.writes = {{OperandKind::WeightGradient}};
}

TrainingPlan layers_plan(const KeyValues& k, bool in_two) {
  TrainingPlan plan;
  plan.family = "layers";
  plan.precision = DType::BF16;
  plan.states = {{"optimizer_state", DType::F32, kStatesPerElement}};
  plan.master = Master::InState;
  plan.optimizer_fixed_ns = k.integer("optimizer");
  const auto add = [&](const char* body, std::int64_t ns) {
    return plan.add({{body, DType::BF16, {k.integer("layer_bytes")}, {fixed_kernel(ns)}}, 0});
  };
  StageSpec stage;
  stage.elements = k.integer("layer_bytes") / size_of(plan.precision);
  stage.outputs = {{plan.precision, kActivationBytes, /*gradient=*/true, /*backward_reads=*/true}};
  stage.forward = add("layers.forward", k.integer("forward"));
  stage.backward = add("layers.backward", k.integer("backward"));
  stage.backward_accumulate = stage.backward;
  for (std::int64_t i = 0; i < k.integer("layers"); ++i) {
    plan.stages.push_back(stage);
    plan.stages.back().name = "layer" + std::to_string(i);
    if (i > 0) plan.stages.back().inputs = {{.index = static_cast<std::int32_t>(i) - 1, .gradient = true}};
  }
  plan.stages.back().outputs.clear();  // nothing comes after it
  for (PortSpec& port : plan.stages.back().inputs) port.backward_reads = true;
  if (!in_two) return plan;
  const std::int64_t half = k.integer("backward") / 2;
  const OpSpecIndex of_inputs = add("layers.backward_inputs", k.integer("backward") - half);
  const OpSpecIndex of_weights = add("layers.backward_weights", half);
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    add_halves(static_cast<std::int32_t>(i), of_inputs, of_weights, plan.stages[i]);
  return plan;
}

std::unique_ptr<StepSource> make_layers(const Scenario& scenario, const Rewrites& rewrites, Rank rank) {
  require_training_options(scenario);
  require_no_validation(scenario);
  const WorkloadOptions& w = scenario.workload;
  const KeyValues& k = w.keys;
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
  constexpr std::int64_t kMostNs = std::int64_t{1} << 50;  // 13 days
  require_size("layers", k.integer("layers"), kMostLayers);
  require_size("layer_bytes", k.integer("layer_bytes"), kMostBytes);
  require_option(k.integer("layer_bytes") % 64 == 0, "layer_bytes",
                 std::to_string(k.integer("layer_bytes")) + " is not a multiple of 64",
                 "allowed: a multiple of 64 bytes");
  require_size("forward", k.integer("forward"), kMostNs);
  require_size("backward", k.integer("backward"), kMostNs);
  require_size("optimizer", k.integer("optimizer"), kMostNs);
  require_option(w.recompute == "none", "recompute", "measured layers have nothing to recompute", "allowed: none");
  if (scenario.optimizer.clip_norm > 0)
    throw ConfigError("optimizer.clip_norm: measured layers have no gradients to clip; allowed: 0");
  if (scenario.optimizer.state_bits != 32)
    throw ConfigError("optimizer.state_bits: measured layers have states of a fixed size; allowed: 32");
  const Rewrites all = all_rewrites(scenario, rewrites);
  return std::make_unique<TrainingSource>(
      of_rank(one_size(layers_plan(k, goes_back_in_two(scenario))), scenario, all, rank), scenario, all, rank);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(layers, make_layers, kKeys, "A stack of layers given by measured times; simulated only")
