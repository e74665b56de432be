#include "core/workloads/common/training_source.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/formats/sums.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {

namespace {

// "adamw", or with quantised states "adamw_8bit": bodies of their own, as they cost something else.
std::string name_with_states(const OptimizerOptions& optimizer) {
  std::string name = optimizer.name;
  if (optimizer.state_bits < 32) name.append("_").append(std::to_string(optimizer.state_bits)).append("bit");
  return name;
}

// Policies place what an update needs by layers: each is a stage that is updated, with those after it that are not,
// such as frozen ones; what comes before the first belongs to it.
std::vector<std::int32_t> layers_of(const TrainingPlan& plan) {
  std::vector<std::int32_t> layers;
  std::int32_t updated = 0;
  for (const StageSpec& stage : plan.stages) {
    updated += stage.trains();
    layers.push_back(std::max(updated - 1, 0));
  }
  return layers;
}

}  // namespace

TrainingSource::TrainingSource(TrainingPlan plan, const Scenario& scenario, const GraphRequest& request)
    : plan_(std::move(plan)),
      layers_(layers_of(plan_)),
      optimizer_name_(name_with_states(scenario.optimizer)),
      clip_norm_(scenario.optimizer.clip_norm),
      micro_batches_(scenario.workload.micro_batches),
      devices_(scenario.workload.devices),
      parts_(scenario.workload.partition == "none" ? 1 : devices_),
      streams_parameters_(request.streams_parameters),
      gathers_each_pass_(scenario.workload.partition == "parameters" || request.streams_parameters),
      rank_(request.rank),
      gpu_(scenario.machine.gpu),
      steps_(scenario.steps - scenario.first_step),
      first_step_(scenario.first_step),
      recomputation_(choose_recomputation(plan_, scenario, request)),
      delayed_update_(request.delayed_update),
      widens_gradients_(request.fp32_gradients && size_of(plan_.precision) == 2),
      subspace_(request.subspace),
      one_bit_(request.one_bit),
      scales_loss_(plan_.precision == DType::F16 && scenario.optimizer.loss_scaling && !plan_.batch.load.body.empty()),
      validation_(scenario.validation),
      saves_(!scenario.checkpoint.directory.empty() && request.rank == 0),
      save_every_(scenario.checkpoint.every) {
  CHECK(!plan_.stages.empty() && parts_ >= 1 && micro_batches_ >= 1, plan_.family, parts_, micro_batches_);
  CHECK(recomputation_.recomputes.size() == plan_.stages.size() && recomputation_.from.size() == plan_.stages.size(),
        recomputation_.recomputes.size(), recomputation_.from.size(), plan_.stages.size());
  CHECK(!subspace_ || subspace_->check_every >= 1, subspace_->check_every);
  CHECK(!one_bit_ || (one_bit_->warmup_steps >= 1 && one_bit_->block >= 1), one_bit_->warmup_steps, one_bit_->block);
  // The parameter keeps its master; Adam's moments are of the subspace.
  if (subspace_)
    std::erase_if(plan_.states, [&](const StateSpec& s) { return s.name != "master_low" || !subspace_->masters; });
  // Both moments are needed by name.
  if (one_bit_ && plan_.master == Master::InState) {
    plan_.states = {{"master"}, {"adam_m"}, {"adam_v"}};
    plan_.master = Master::FirstState;
  }
  if (divides()) divide_stages(scenario);
}

void TrainingSource::prologue(Graph& graph) {
  CHECK(stages_.empty() && step_ == 0, "a prologue comes once, and first", plan_.family, step_);
  add_works(graph);
  stages_.resize(plan_.stages.size());
  for (std::size_t i = 0; i < stages_.size(); ++i) add_stage(graph, i);
  if (subspace_) subspaces_.resize(stages_.size());
  for (std::size_t i = 0; i < subspaces_.size(); ++i)
    if (trains(i)) add_subspace(graph, i);
  if (one_bit_) one_bits_.resize(stages_.size());
  for (std::size_t i = 0; i < one_bits_.size(); ++i)
    if (trains(i)) add_one_bit(graph, i);
  if (divides()) partitions_.resize(stages_.size());
  for (std::size_t i = 0; i < partitions_.size(); ++i)
    if (spec(i).elements > 0) add_partition(graph, i);
  if (saves_) add_saves(graph);
  if (scales_loss_) graph.append(loss_scale_op(graph));
  if (first_step_ > 0) graph.set_first_step(first_step_);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (spec(i).elements == 0) continue;
    if (first_step_ > 0 && trains(i)) {
      load_checkpoint(graph, i);
      continue;
    }
    const std::size_t count = trains(i) ? plan_.states.size() : 0;  // a policy's own states come after them
    CHECK(stages_[i].states.size() >= count, spec(i).name, stages_[i].states.size(), count);
    graph.append(load_op(graph, i, "parameters.load", {stages_[i].states.data(), count}));
    if (subspace_ && trains(i)) load_subspace(graph, i);
  }
}

namespace {

// A gradient's fields, one after another, each in blocks at once; a block's numbers are added one by one. Of a part of
// a bucket the fields are not looked at: it is taken for one.
std::vector<Kernel> norm_kernels(const StageSpec& stage, std::int64_t elements, DType type) {
  const auto sum = [&](std::int64_t count) { return row_kernel(std::min(count, kNormBlock), count * size_of(type)); };
  if (stage.layout == nullptr || elements < stage.elements) return {sum(elements)};
  std::vector<Kernel> kernels;
  for (const Field& field : stage.layout->fields) kernels.push_back(sum(field.elements()));
  return kernels;
}

TensorId add_plain_tensor(Graph& graph, const std::string& name, Role role, DType type, std::int64_t bytes,
                          bool persistent = false) {
  Tensor tensor;
  tensor.name = name;
  tensor.role = role;
  tensor.type = type;
  tensor.bytes = bytes;
  tensor.persistent = persistent;
  return graph.add_tensor(std::move(tensor));
}

}  // namespace

void TrainingSource::add_works(Graph& graph) {
  for (const OpSpec& op_spec : plan_.ops) works_.push_back(graph.add_work(op_spec.work));
  if (!plan_.batch.load.body.empty()) {
    add_batch_works(graph);
    for (const TensorSpec& tensor : plan_.batch.tensors)
      batch_.push_back(add_plain_tensor(graph, "batch." + tensor.name, Role::Batch, tensor.type, tensor.bytes));
    batch_values_.assign(batch_.size(), kNone);
  }
  if (controls_update()) add_control(graph);
}

void TrainingSource::add_control(Graph& graph) {
  const std::string name = scales_loss_ ? "loss_scale" : "clip";
  std::int64_t buckets = 0;
  for (std::size_t i = 0; i < plan_.stages.size(); ++i) buckets += trains(i);
  Work work{name, DType::F64, {buckets}, {memory_kernel((buckets + 1) * size_of(DType::F64))}};
  control_work_ = graph.add_work(std::move(work));
  control_label_ = graph.intern(name);
  if (divides()) {
    norm_sum_work_ = graph.add_work(
        {"all_reduce_sum", DType::F64, {buckets, devices_}, {memory_kernel(2 * buckets * size_of(DType::F64))}});
    norm_sum_label_ = graph.intern("grad_norm.all_reduce");
  }
  control_ = add_plain_tensor(graph, "update_control", Role::Scalar, DType::F64, kUpdateControlBytes);
  if (scales_loss_)
    loss_scale_ = add_plain_tensor(graph, "loss_scale", Role::Scalar, DType::F64, kLossScaleBytes, /*persistent=*/true);
}

void TrainingSource::add_batch_works(Graph& graph) {
  Work load = plan_.batch.load;
  load.sizes.push_back(0);
  batch_work_ = graph.add_work(load);
  batch_label_ = graph.intern("batch.load");
  if (validation_.every == 0) return;
  load.sizes.back() = 1;
  held_out_work_ = graph.add_work(std::move(load));
  held_out_label_ = graph.intern("validation.load");
}

void TrainingSource::add_stage(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  CHECK(s.elements >= 0 && s.elements % parts_ == 0, s.name, s.elements, parts_);
  CHECK(s.layout == nullptr || s.layout->elements == s.elements, s.name, s.layout->elements, s.elements);
  for (const PortSpec& port : s.inputs)
    CHECK(port.from == PortSpec::From::Batch || port.index < static_cast<std::int32_t>(index), s.name, port.index);
  Stage& stage = stages_[index];
  const std::int64_t owned = s.elements / parts_, rank_part = divides() ? rank_ : 0;
  const auto add = [&](std::string_view name, Role role, DType type, std::int64_t bytes, bool bucket, bool persistent) {
    Tensor tensor;
    tensor.name = s.name + "." + std::string(name);
    tensor.role = role;
    tensor.type = type;
    tensor.bytes = bytes;
    tensor.layer = layers_[index];
    if (bucket) tensor.layout = s.layout;
    if (bucket) tensor.first_element = rank_part * owned;
    tensor.persistent = persistent;
    return graph.add_tensor(std::move(tensor));
  };
  const std::int64_t bucket_bytes = owned * size_of(plan_.precision);
  if (s.elements > 0) stage.parameter = add("parameter", Role::Parameter, plan_.precision, bucket_bytes, true, true);
  if (trains(index)) {
    for (const StateSpec& state : plan_.states)
      stage.states.push_back(add(state.name, Role::OptimizerState, state.type, state.bytes(owned), true, true));
    stage.gradient = add("gradient", Role::Gradient, plan_.precision, bucket_bytes, true, false);
    if (widens_gradients_)
      stage.wide_gradient = add("fp32_gradient", Role::Gradient, DType::F32, owned * size_of(DType::F32), true, false);
    if (controls_update())
      stage.square_sum = add("square_sum", Role::Scalar, DType::F64, size_of(DType::F64), false, false);
  }
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    const OutputSpec& output = s.outputs[i];
    const std::string number = i == 0 ? "" : std::to_string(i);
    stage.outputs.push_back(add("output" + number, Role::Activation, output.type, output.bytes, false, false));
    stage.output_gradients.push_back(
        output.gradient ? add("output_gradient" + number, Role::Activation, output.type, output.bytes, false, false)
                        : kNone);
  }
  stage.output_values.assign(s.outputs.size(), kNone);
  stage.output_gradient_values.assign(s.outputs.size(), kNone);
  for (const TensorSpec& saved : s.saved)
    stage.saved.push_back(add(saved.name, Role::Activation, saved.type, saved.bytes, false, false));
  for (const PortSpec& port : s.inputs)
    if (port.from == PortSpec::From::Bucket && port.gradient && !port.adds)
      stages_[static_cast<std::size_t>(port.index)].contribution =
          add("tied_gradient", Role::Activation, plan_.precision, port.gradient_bytes, false, false);
  stage.labels = {graph.intern(s.name + ".forward"),   graph.intern(s.name + ".recompute"),
                  graph.intern(s.name + ".backward"),  graph.intern(s.name + ".all_reduce"),
                  graph.intern(s.name + ".grad_norm"), graph.intern(s.name + ".widen"),
                  graph.intern(s.name + ".optimizer"), graph.intern(s.name + ".evaluate")};
  stage.saved_values.assign(s.saved.size(), kNone);
  if (!trains(index)) return;
  if (plan_.optimizer_fixed_ns == 0 && plan_.library_updates())
    stage.optimizer_workspace = optimizer_workspace(*s.layout);
  if (controls_update()) stage.norm_workspace = norm_workspace(index);
  const auto [found, fresh] = stage_of_size_.try_emplace(s.elements, index);
  if (fresh) {
    add_bucket_works(graph, s, stage);
  } else {
    const Stage& same = stages_[found->second];
    stage.optimizer = same.optimizer;
    stage.all_reduce = same.all_reduce;
    stage.grad_norm = same.grad_norm;
    stage.widen = same.widen;
  }
}

// The works that depend on a bucket's size alone.
void TrainingSource::add_bucket_works(Graph& graph, const StageSpec& s, Stage& stage) {
  const std::int64_t elements = s.elements / parts_;
  const std::int64_t bytes = elements * size_of(plan_.precision);
  std::int64_t state_bytes = 0;
  for (const StateSpec& state : plan_.states) state_bytes += state.bytes(elements);
  // Read the gradient and what is updated, write what is updated; a parameter beside a master copy is written only.
  const std::int64_t gradient_bytes = widens_gradients_ ? elements * size_of(DType::F32) : bytes;
  std::int64_t traffic = gradient_bytes + 2 * state_bytes + bytes;
  if (plan_.update_reads_parameter()) traffic += bytes;
  Work optimizer{"optimizer." + optimizer_name_, plan_.precision, {elements, clips()}, {}};
  optimizer.kernels.push_back(plan_.optimizer_fixed_ns > 0 ? fixed_kernel(plan_.optimizer_fixed_ns / parts_)
                                                           : optimizer_kernel(elements, traffic));
  // In fp32, clipping scales a copy of the gradient, and under delayed update the parameters are copied before they are
  // updated. 16-bit updates, and those of quantised states, do it all in one pass.
  const int copies =
      (plan_.library_updates() && clips() ? 1 : 0) + (plan_.precision == DType::F32 && delayed_update_ ? 1 : 0);
  for (int i = 0; i < copies; ++i) optimizer.kernels.push_back(memory_kernel(2 * bytes));
  stage.optimizer = graph.add_work(std::move(optimizer));
  if (widens_gradients_)
    stage.widen =
        graph.add_work({"gradient.widen", plan_.precision, {elements}, {memory_kernel(bytes + gradient_bytes)}});
  if (devices_ > 1 && !divides())
    stage.all_reduce =
        graph.add_work({"all_reduce", plan_.precision, {elements, devices_}, {memory_kernel(2 * bytes)}});
  if (controls_update())
    stage.grad_norm =
        graph.add_work({"grad_norm", plan_.precision, {elements}, norm_kernels(s, elements, plan_.precision)});
}

Op TrainingSource::load_op(Graph& graph, std::size_t index, const std::string& body, std::span<const TensorId> states) {
  Stage& stage = stages_[index];
  std::int64_t bytes = graph.tensor(stage.parameter).bytes;
  for (TensorId state : states) bytes += graph.tensor(state).bytes;
  const WorkId work = graph.add_work({body, plan_.precision, {spec(index).elements / parts_}, {memory_kernel(bytes)}});
  Op op = new_op(graph.intern(spec(index).name + ".load"), work, Phase::Load, index);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  op.step = kNone;
  stage.parameter_in_use = graph.new_version(stage.parameter);
  op.writes.push_back({stage.parameter_in_use, kNone});
  for (TensorId state : states) op.writes.push_back({graph.new_version(state), kNone});
  return op;
}

Op TrainingSource::loss_scale_op(Graph& graph) {
  const char* body = first_step_ > 0 ? "checkpoint.load_loss_scale" : "loss_scale.load";
  const WorkId work = graph.add_work({body, DType::F64, {}, {memory_kernel(kLossScaleBytes)}});
  Op op = new_op(graph.intern("loss_scale.load"), work, Phase::Load, 0);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  op.step = op.layer = kNone;
  latest_loss_scale_ = graph.new_version(loss_scale_);
  op.writes.push_back({latest_loss_scale_, kNone});
  return op;
}

Op TrainingSource::new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  Op op;
  op.label = label;
  op.work = work;
  op.phase = phase;
  op.engine = Engine::Compute;
  op.engines = engine_bit(Engine::Compute);
  op.step = step_;
  op.micro_batch = micro_batch_;
  op.layer = layers_[index];
  return op;
}

Op TrainingSource::planned_op(std::int32_t label, OpSpecIndex op_spec, Phase phase, std::size_t index) const {
  CHECK(op_spec != kNone, spec(index).name, name_of(phase));
  Op op = new_op(label, works_[static_cast<std::size_t>(op_spec)], phase, index);
  op.workspace_bytes = plan_.ops[static_cast<std::size_t>(op_spec)].workspace_bytes;
  return op;
}

}  // namespace tandem
