#include "core/step/context.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {

StepOptions::StepOptions(const Scenario& scenario, Rank of_rank)
    : optimizer(scenario.optimizer),
      validation(scenario.validation),
      micro_batches(scenario.workload.micro_batches),
      devices(scenario.workload.devices),
      rank(of_rank),
      gpu(scenario.machine.gpu),
      steps(scenario.steps - scenario.first_step),
      first_step(scenario.first_step),
      saves(!scenario.checkpoint.directory.empty() && of_rank == 0),
      save_every(scenario.checkpoint.every) {}

namespace {

// Policies place what an update needs by layers: each is a stage that is updated, with those after it that are not,
// such as frozen ones; what comes before the first belongs to it. Where nothing goes backward, each stage is a layer.
std::vector<std::int32_t> layers_of(const TrainingPlan& plan) {
  std::vector<std::int32_t> layers;
  std::int32_t updated = 0;
  const bool trains = std::any_of(plan.stages.begin(), plan.stages.end(),
                                  [](const StageSpec& stage) { return stage.backward != kNone; });
  for (const StageSpec& stage : plan.stages) {
    const bool is_layer = stage.trains() || (!trains && stage.held_for == kNone);
    updated += is_layer;
    layers.push_back(std::max(updated - 1, 0));
  }
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (const std::int32_t owner = plan.stages[i].held_for; owner != kNone)
      layers[i] = layers[static_cast<std::size_t>(owner)];
  return layers;
}

}  // namespace

StepContext::StepContext(const TrainingPlan& plan, const Scenario& scenario, Rank rank)
    : options(scenario, rank),
      stages(plan.stages.size()),
      gradient_type(plan.precision),
      recomputes(plan.stages.size(), false),
      plan_(&plan),
      layers_(layers_of(plan)),
      scales_loss_(plan.precision == DType::F16 && scenario.optimizer.loss_scaling && !plan.batch.load.body.empty()) {
  CHECK(!stages.empty() && options.micro_batches >= 1, plan.family, options.micro_batches);
}

ValueId StepContext::parameter_of(std::size_t index) const {
  const StepStage& stage = stages[index];
  return stage.whole_parameter != kNone ? stage.whole_parameter : stage.parameter_in_use;
}

Op StepContext::new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  Op op;
  op.label = label;
  op.work = work;
  op.phase = phase;
  op.engine = Engine::Compute;
  op.engines = engine_bit(Engine::Compute);
  op.step = step;
  op.micro_batch = micro_batch;
  op.layer = layers_[index];
  return op;
}

void StepContext::place(Op& op, std::size_t index) const {
  if (!spec(index).on_cpu && !on_cpu) return;
  op.engine = Engine::CpuCompute;
  op.engines = engine_bit(Engine::CpuCompute);
}

Op StepContext::loader_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  Op op = new_op(label, work, phase, index);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  return op;
}

Op StepContext::collective(Graph& graph, std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  CHECK(options.devices > 1, "a collective of one rank", spec(index).name, options.devices);
  Op op = new_op(label, work, phase, index);
  op.engine = Engine::Collective;
  op.engines = engine_bit(Engine::Collective);
  op.match_group = 0;
  op.match_sequence = graph.next_match();
  return op;
}

Tensor StepContext::tensor_of(std::size_t index, std::string_view name, Role role, DType type,
                              std::int64_t bytes) const {
  Tensor tensor;
  tensor.name = spec(index).name + "." + std::string(name);
  tensor.role = role;
  tensor.type = type;
  tensor.bytes = bytes;
  tensor.layer = layers_[index];
  return tensor;
}

Tensor StepContext::bucket_tensor(std::size_t index, std::string_view name, Role role, DType type,
                                  std::int64_t bytes) const {
  Tensor tensor = tensor_of(index, name, role, type, bytes);
  tensor.layout = spec(index).layout;
  tensor.first_element = part * elements_of_part(index);
  tensor.on_host = spec(index).on_cpu;
  return tensor;
}

void update_in_place(Graph& graph, Op& op, TensorId tensor) {
  const ValueId old = graph.tensor(tensor).latest;
  op.reads.push_back(old);
  op.writes.push_back({graph.new_version(tensor), old});
}

TensorId add_plain_tensor(Graph& graph, const std::string& name, Role role, DType type, std::int64_t bytes,
                          bool persistent) {
  Tensor tensor;
  tensor.name = name;
  tensor.role = role;
  tensor.type = type;
  tensor.bytes = bytes;
  tensor.persistent = persistent;
  return graph.add_tensor(std::move(tensor));
}

}  // namespace tandem
