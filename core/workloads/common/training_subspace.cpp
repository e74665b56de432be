// TrainingSource's updates in a subspace (subspace.hpp): what each op reads and writes. A projector is two tensors, the
// places of its non-zeros and their values.
//
//   subspace.load      writes [places, values], m, v. Work::sizes: rank
//   subspace.fit       reads  gradient, places, values, m, v; writes values, m, v. Work::sizes: rank,
//                             millionths of the threshold
//   subspace.compress  reads  gradient, [places, values]; writes the gradient in the subspace
//   subspace.adam(w)   reads  that, m, v, [control]; writes the change in the subspace, m, v
//   subspace.apply     reads  parameter, [master_low], change, [places, values], [control];
//                      writes parameter, [master_low]
// Stages without a matrix that is compressed have no projectors, and no fit.
#include <cmath>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/subspace.hpp"
#include "core/workloads/common/training_source.hpp"

namespace tandem {

void TrainingSource::add_subspace(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  CHECK(subspace_->nonzeros >= 1 && subspace_->nonzeros <= subspace_->rank, s.name, subspace_->nonzeros,
        subspace_->rank);
  Subspace& subspace = subspaces_[index];
  std::shared_ptr<const Layout> projectors;
  if (s.layout != nullptr) {
    subspace.layout = subspace_layout(*s.layout, subspace_->rank);
    projectors = projector_layout(*s.layout, *subspace_);
  }
  const auto add = [&](const char* name, Role role, DType type, const std::shared_ptr<const Layout>& layout) {
    Tensor tensor;
    tensor.name = s.name + "." + name;
    tensor.role = role;
    tensor.type = type;
    tensor.bytes = (layout == nullptr ? s.elements : layout->elements) * size_of(type);
    tensor.layer = layers_[index];
    tensor.layout = layout;
    tensor.persistent = role == Role::OptimizerState;
    const TensorId id = graph.add_tensor(std::move(tensor));
    if (role == Role::OptimizerState) stages_[index].states.push_back(id);
    return id;
  };
  if (projectors != nullptr && !projectors->fields.empty()) {
    subspace.places = add("projector_places", Role::OptimizerState, DType::I16, projectors);
    subspace.values = add("projector_values", Role::OptimizerState, DType::F32, projectors);
  }
  subspace.m = add("adam_m", Role::OptimizerState, DType::F32, subspace.layout);
  subspace.v = add("adam_v", Role::OptimizerState, DType::F32, subspace.layout);
  subspace.gradient = add("subspace_gradient", Role::Gradient, DType::F32, subspace.layout);
  subspace.change = add("subspace_change", Role::Gradient, DType::F32, subspace.layout);
  add_subspace_works(graph, index);
}

void TrainingSource::add_subspace_works(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  Subspace& subspace = subspaces_[index];
  subspace.load_label = graph.intern(s.name + ".subspace.load");
  subspace.compress_label = graph.intern(s.name + ".compress");
  subspace.fit_label = graph.intern(s.name + ".fit");
  subspace.apply_label = graph.intern(s.name + ".apply");
  const std::int64_t rank = subspace_->rank, change_bytes = graph.tensor(subspace.change).bytes;
  const std::int64_t elements = change_bytes / size_of(DType::F32);
  SubspaceOp compress, apply, fit;
  if (s.layout == nullptr) {  // nothing is compressed, as far as is known
    compress.kernels = {memory_kernel(s.elements * size_of(plan_.precision) + change_bytes)};
    apply.kernels = {memory_kernel(2 * s.elements * size_of(plan_.precision) + change_bytes)};
  } else {
    compress = compress_op(*s.layout, *subspace_, plan_.precision, gpu_);
    apply = apply_op(*s.layout, *subspace_, plan_.precision, gpu_);
    fit = fit_op(*s.layout, *subspace_, plan_.precision, gpu_);
    stages_[index].optimizer_workspace = optimizer_workspace(*subspace.layout);
  }
  subspace.compress_workspace = compress.workspace_bytes;
  subspace.apply_workspace = apply.workspace_bytes;
  subspace.fit_workspace = fit.workspace_bytes;
  const auto found = stage_of_size_.at(s.elements);
  if (const Subspace& same = subspaces_[found]; found != index && same.projects() == subspace.projects()) {
    subspace.load = same.load, subspace.compress = same.compress, subspace.fit = same.fit, subspace.apply = same.apply;
    stages_[index].optimizer = stages_[found].optimizer;
    return;
  }
  subspace.compress = graph.add_work({"subspace.compress", plan_.precision, {rank}, std::move(compress.kernels)});
  subspace.apply = graph.add_work({"subspace.apply", plan_.precision, {rank}, std::move(apply.kernels)});
  const Kernel update = plan_.optimizer_fixed_ns > 0
                            ? fixed_kernel(plan_.optimizer_fixed_ns)
                            : optimizer_kernel(elements, 6 * change_bytes);  // 2 of 4 read only
  stages_[index].optimizer = graph.add_work({"subspace." + optimizer_name_, DType::F32, {elements}, {update}});
  std::int64_t loaded = 2 * change_bytes;
  if (subspace.projects()) {
    loaded += graph.tensor(subspace.places).bytes + graph.tensor(subspace.values).bytes;
    subspace.fit = graph.add_work(
        {"subspace.fit", plan_.precision, {rank, std::llround(subspace_->threshold * 1e6)}, std::move(fit.kernels)});
  }
  subspace.load = graph.add_work({"subspace.load", DType::F32, {rank}, {memory_kernel(loaded)}});
}

void TrainingSource::load_subspace(Graph& graph, std::size_t index) {
  const Subspace& subspace = subspaces_[index];
  Op op = new_op(subspace.load_label, subspace.load, Phase::Load, index);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  op.step = kNone;
  for (TensorId state : {subspace.places, subspace.values, subspace.m, subspace.v})
    if (state != kNone) op.writes.push_back({graph.new_version(state), kNone});
  graph.append(std::move(op));
}

void TrainingSource::read_projectors(const Graph& graph, std::size_t index, Op& op) const {
  const Subspace& subspace = subspaces_[index];
  if (!subspace.projects()) return;
  op.reads.push_back(graph.tensor(subspace.places).latest);
  op.reads.push_back(graph.tensor(subspace.values).latest);
}

void TrainingSource::fit(Graph& graph, std::size_t index) {
  const Subspace& subspace = subspaces_[index];
  if (!subspace.projects()) return;
  Op op = new_op(subspace.fit_label, subspace.fit, Phase::Reduce, index);
  op.workspace_bytes = subspace.fit_workspace;
  op.reads.push_back(stages_[index].gradient_value);
  op.reads.push_back(graph.tensor(subspace.places).latest);
  for (TensorId state : {subspace.values, subspace.m, subspace.v}) {
    const ValueId old = graph.tensor(state).latest;
    op.reads.push_back(old);
    op.writes.push_back({graph.new_version(state), old});
  }
  graph.append(std::move(op));
}

void TrainingSource::compress(Graph& graph, std::size_t index) {
  const Subspace& subspace = subspaces_[index];
  Stage& stage = stages_[index];
  Op op = new_op(subspace.compress_label, subspace.compress, Phase::Reduce, index);
  op.workspace_bytes = subspace.compress_workspace;
  op.reads.push_back(stage.gradient_value);
  read_projectors(graph, index, op);
  stage.gradient_value = graph.new_version(subspace.gradient);
  op.writes.push_back({stage.gradient_value, kNone});
  graph.append(std::move(op));
}

void TrainingSource::optimize_in_subspace(Graph& graph, std::size_t index) {
  const Subspace& subspace = subspaces_[index];
  Stage& stage = stages_[index];
  Op update = new_op(stage.labels.optimizer, stage.optimizer, Phase::OptimizerStep, index);
  update.engines |= engine_bit(Engine::CpuOptimizer);
  update.divisible = true;
  update.workspace_bytes = stage.optimizer_workspace;
  update.reads.push_back(stage.gradient_value);
  const ValueId change = graph.new_version(subspace.change);
  update.writes.push_back({change, kNone});
  for (TensorId state : {subspace.m, subspace.v}) {
    const ValueId old = graph.tensor(state).latest;
    update.reads.push_back(old);
    update.writes.push_back({graph.new_version(state), old});
  }
  if (controls_update()) update.reads.push_back(control_value_);
  graph.append(std::move(update));

  Op apply = new_op(subspace.apply_label, subspace.apply, Phase::OptimizerStep, index);
  apply.workspace_bytes = subspace.apply_workspace;
  const auto replace = [&](TensorId tensor) {
    const ValueId old = graph.tensor(tensor).latest;
    apply.reads.push_back(old);
    apply.writes.push_back({graph.new_version(tensor), old});
  };
  CHECK(stage.states.size() >= plan_.states.size(), spec(index).name, stage.states.size(), plan_.states.size());
  replace(stage.parameter);
  for (std::size_t i = 0; i < plan_.states.size(); ++i) replace(stage.states[i]);
  apply.reads.push_back(change);
  read_projectors(graph, index, apply);
  if (controls_update()) apply.reads.push_back(control_value_);
  stage.parameter_in_use = apply.writes.front().value;
  graph.append(std::move(apply));
}

}  // namespace tandem
