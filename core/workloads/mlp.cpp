// Multi-layer perceptron on images: `layers` linear layers with relu, then a linear classifier with cross entropy. One
// bucket a layer.
#include "core/graph/kernels.hpp"
#include "core/workloads/common/derived_stage.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

struct Layer {
  std::int64_t inputs, outputs;
  bool is_first, is_last;
};

// A linear layer with relu, or with the loss.
std::shared_ptr<const Module> layer_module(const WorkloadOptions& w, const Layer& layer) {
  ModuleBuilder m(layer.is_last ? "head" : "layer", w.precision);
  const LocalId x = m.input("input", Shape({w.batch, layer.inputs}, w.precision));
  if (layer.is_last) {
    const LocalId targets = m.input("targets", Shape({w.batch}, DType::I64));
    m.output(m.cross_entropy("loss", m.linear("output", x, layer.outputs), targets));
  } else {
    m.output(m.activation("activation", m.linear("relu", x, layer.outputs), "relu"));
  }
  return m.build();
}

StageSpec stage_of(TrainingPlan& plan, const Scenario& scenario, const Layer& layer) {
  const WorkloadOptions& w = scenario.workload;
  DerivedStage stage;
  stage.module = layer_module(w, layer);
  stage.ports = {layer.is_first ? PortSource::Inputs : PortSource::StageBefore};
  if (layer.is_last) stage.ports.push_back(PortSource::Targets);
  stage.body = "mlp." + stage.module->name;
  stage.sizes = {w.batch, layer.inputs, layer.outputs, w.micro_batches, !layer.is_first};
  stage.micro_batches = w.micro_batches;
  return derived_stage(plan, stage, {scenario.machine.gpu, body_threads(scenario)});
}

TrainingPlan mlp_plan(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  TrainingPlan plan;
  plan.family = "mlp";
  plan.precision = w.precision;
  plan.batch.input_type = w.precision;
  plan.batch.input_bytes = w.batch * w.inputs * size_of(w.precision);
  plan.batch.target_bytes = w.batch * size_of(DType::I64);
  plan.batch.load = {"mlp.batch.load",
                     w.precision,
                     {w.batch, w.inputs},
                     {memory_kernel(plan.batch.input_bytes + plan.batch.target_bytes)}};
  plan.stages.push_back(stage_of(plan, scenario, {w.inputs, w.hidden, true, false}));
  if (w.layers > 1) {
    const StageSpec hidden = stage_of(plan, scenario, {w.hidden, w.hidden, false, false});
    plan.stages.insert(plan.stages.end(), static_cast<std::size_t>(w.layers - 1), hidden);
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) plan.stages[i].name = "layer" + std::to_string(i);
  plan.stages.push_back(stage_of(plan, scenario, {w.hidden, w.classes, false, true}));
  plan.stages.back().name = "head";
  plan.set_adam_states(scenario.optimizer.state_bits);
  return plan;
}

std::unique_ptr<StepSource> make_mlp(const Scenario& scenario, const GraphRequest& request) {
  require_training_options(scenario);
  const WorkloadOptions& w = scenario.workload;
  require_size("layers", w.layers, kMostLayers);
  require_size("inputs", w.inputs, kMostSize);
  require_size("hidden", w.hidden, kMostSize);
  require_size("classes", w.classes, kMostSize);
  require_product("inputs, hidden", {w.inputs, w.hidden});
  require_product("hidden", {w.hidden, w.hidden});
  require_product("hidden, classes", {w.hidden, w.classes});
  require_product("batch, inputs", {w.batch, w.inputs});
  require_product("batch, hidden", {w.batch, w.hidden});
  require_product("batch, classes", {w.batch, w.classes});
  require_option(w.recompute == "none", "recompute", "a perceptron has no blocks to recompute", "allowed: none");
  require_option(w.precision == DType::F32, "precision", "a perceptron trains in fp32", "allowed: fp32");
  return std::make_unique<TrainingSource>(mlp_plan(scenario), scenario, request);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(mlp, make_mlp, "Multi-layer perceptron with relu, trained to classify images")
