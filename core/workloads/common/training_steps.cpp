// TrainingSource's steps: the order of ops and what each reads and writes.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/formats/sums.hpp"
#include "core/model/meter.hpp"
#include "core/scenario/schedule.hpp"
#include "core/workloads/common/training_source.hpp"

namespace tandem {

bool TrainingSource::append_step(Graph& graph, std::int64_t) {
  CHECK(stages_.size() == plan_.stages.size(), "the prologue comes first", stages_.size(), plan_.stages.size());
  if (step_ >= steps_) return false;
  for (micro_batch_ = 0; micro_batch_ < micro_batches_; ++micro_batch_) {
    load_batch(graph, batch_label_, batch_work_);
    begin_pass();
    for (std::size_t i = 0; i < stages_.size(); ++i) forward(graph, i);
    turn_back();
    for (std::size_t i = stages_.size(); i-- > 0;) {
      if (!goes_backward(i)) continue;
      recompute(graph, recomputation_.from[i], i);
      if (i > 0) gather_ahead(graph, i - 1);
      backward(graph, i);
      if (micro_batch_ + 1 == micro_batches_ && trains(i)) reduce(graph, i);
    }
  }
  micro_batch_ = static_cast<std::int32_t>(micro_batches_) - 1;  // the update belongs to the last one
  if (controls_update() && divides()) sum_squares_of_ranks(graph);
  if (controls_update()) control_update(graph);
  if (controls_update() && sends_signs())
    for (std::size_t i = stages_.size(); i-- > 0;)
      if (trains(i)) compress_momentum(graph, i);
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (trains(i)) update(graph, i);
  if (saves_after_this_step()) save_state(graph, step_);
  if (evaluates_after(validation_, first_step_ + step_, first_step_ + steps_)) evaluate(graph);
  if (++step_ == steps_ && divides()) retire_whole_parameters(graph);
  return true;
}

void TrainingSource::update(Graph& graph, std::size_t index) {
  if (subspace_) return optimize_in_subspace(graph, index);
  sends_signs() ? optimize_by_signs(graph, index) : optimize(graph, index);
}

void TrainingSource::load_batch(Graph& graph, std::int32_t label, WorkId work) {
  if (work == kNone) return;
  Op op = new_op(label, work, Phase::Load, 0);
  op.layer = kNone;
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    batch_values_[i] = graph.new_version(batch_[i]);
    op.writes.push_back({batch_values_[i], kNone});
  }
  graph.append(std::move(op));
}

// The version in hand of what a port reads.
ValueId TrainingSource::value_of(const PortSpec& port) const {
  const auto index = static_cast<std::size_t>(port.index);
  if (port.from == PortSpec::From::Batch) return batch_values_[index];
  if (port.from == PortSpec::From::Bucket) return parameter_of(index);
  return stages_[index].output_values[static_cast<std::size_t>(port.output)];
}

void TrainingSource::read_forward_operands(std::size_t index, Op& op) const {
  using From = PortSpec::From;
  const StageSpec& s = spec(index);
  if (s.elements > 0) op.reads.push_back(parameter_of(index));
  for (const From from : {From::Bucket, From::Stage, From::Batch})
    for (const PortSpec& port : s.inputs)
      if (port.from == from) op.reads.push_back(value_of(port));
  for (const ValueId read : op.reads) CHECK(read != kNone, s.name, "reads what nobody wrote");
}

void TrainingSource::forward(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  const bool light = recomputes(index);
  append_forward(graph, index,
                 planned_op(stages_[index].labels.forward, light ? s.forward_light : s.forward, Phase::Forward, index),
                 /*writes_output=*/true, /*saves=*/!light);
}

// `saves`: for a backward.
void TrainingSource::append_forward(Graph& graph, std::size_t index, Op op, bool writes_output, bool saves) {
  Stage& stage = stages_[index];
  gather_for(graph, index, op.phase == Phase::Evaluate ? Phase::Evaluate : Phase::Gather);
  read_forward_operands(index, op);
  if (saves && spec(index).loss_gradient_in_forward && scales_loss_) op.reads.push_back(latest_loss_scale_);
  for (std::size_t i = 0; writes_output && i < stage.outputs.size(); ++i) {
    stage.output_values[i] = graph.new_version(stage.outputs[i]);
    op.writes.push_back({stage.output_values[i], kNone});
  }
  for (std::size_t i = 0; saves && i < stage.saved.size(); ++i) {
    stage.saved_values[i] = graph.new_version(stage.saved[i]);
    op.writes.push_back({stage.saved_values[i], kNone});
  }
  op.has_result = spec(index).has_loss;
  graph.append(std::move(op));
}

// Forwards over held-out batches with the parameters that the next forward would use. Nothing of them is kept: what a
// stage without a light forward saves dies as it is written.
void TrainingSource::evaluate(Graph& graph) {
  for (micro_batch_ = 0; micro_batch_ < validation_.batches; ++micro_batch_) {
    load_batch(graph, held_out_label_, held_out_work_);
    begin_pass();
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const StageSpec& s = spec(i);
      const bool light = s.forward_light != kNone;
      append_forward(graph, i,
                     planned_op(stages_[i].labels.evaluate, light ? s.forward_light : s.forward, Phase::Evaluate, i),
                     /*writes_output=*/true, /*saves=*/!light);
    }
  }
}

// What a segment saves, from its first input on; the last output is of no use any more.
void TrainingSource::recompute(Graph& graph, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i <= last; ++i) {
    const bool goes_on = i < last;
    append_forward(
        graph, i,
        planned_op(stages_[i].labels.recompute, goes_on ? spec(i).forward : spec(i).recompute, Phase::Recompute, i),
        /*writes_output=*/goes_on, /*saves=*/true);
  }
}

void TrainingSource::read_backward_operands(std::size_t index, Op& op) const {
  using From = PortSpec::From;
  const StageSpec& s = spec(index);
  const Stage& stage = stages_[index];
  for (std::size_t i = 0; i < s.outputs.size(); ++i)
    if (s.outputs[i].gradient) op.reads.push_back(stage.output_gradient_values[i]);
  if (s.backward_reads_parameter) op.reads.push_back(parameter_of(index));
  const auto read_ports = [&](From from) {
    for (const PortSpec& port : s.inputs)
      if (port.from == from && port.backward_reads) op.reads.push_back(value_of(port));
  };
  read_ports(From::Bucket);
  read_ports(From::Stage);
  for (std::size_t i = 0; i < s.outputs.size(); ++i)
    if (s.outputs[i].backward_reads) op.reads.push_back(stage.output_values[i]);
  for (ValueId saved : stage.saved_values) op.reads.push_back(saved);
  read_ports(From::Batch);
  if (s.contributed) op.reads.push_back(stage.contribution_value);
  if (accumulates() && trains(index)) op.reads.push_back(stage.gradient_value);
  for (const ValueId read : op.reads)
    CHECK(read != kNone, s.name, "goes backward before what comes after it", step_, micro_batch_);
}

// Of what a port reads: the latest version of its gradient.
ValueId& TrainingSource::gradient_of(const PortSpec& port) {
  Stage& stage = stages_[static_cast<std::size_t>(port.index)];
  return port.from == PortSpec::From::Bucket ? stage.contribution_value
                                             : stage.output_gradient_values[static_cast<std::size_t>(port.output)];
}

void TrainingSource::write_gradients(Graph& graph, std::size_t index, PortSpec::From from, Op& op) {
  for (const PortSpec& port : spec(index).inputs) {
    if (port.from != from || !port.gradient) continue;
    const Stage& read = stages_[static_cast<std::size_t>(port.index)];
    ValueId& gradient = gradient_of(port);
    const ValueId so_far = port.adds ? gradient : kNone;
    if (so_far != kNone) op.reads.push_back(so_far);
    gradient = graph.new_version(from == PortSpec::From::Bucket
                                     ? read.contribution
                                     : read.output_gradients[static_cast<std::size_t>(port.output)]);
    op.writes.push_back({gradient, so_far});
  }
}

void TrainingSource::backward(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  Stage& stage = stages_[index];
  const bool adds = accumulates() && trains(index);
  Op op = planned_op(stage.labels.backward, adds ? s.backward_accumulate : s.backward, Phase::Backward, index);
  if (s.backward_reads_parameter) gather_for(graph, index, Phase::Gather);
  read_backward_operands(index, op);
  ValueId gradient = kNone;
  if (trains(index)) {
    gradient = graph.new_version(divides() ? partitions_[index].whole_gradient : stage.gradient);
    op.writes.push_back({gradient, adds ? stage.gradient_value : kNone});
  }
  write_gradients(graph, index, PortSpec::From::Stage, op);
  write_gradients(graph, index, PortSpec::From::Bucket, op);
  if (s.has_loss && !s.loss_gradient_in_forward && scales_loss_) op.reads.push_back(latest_loss_scale_);
  graph.append(std::move(op));
  if (!trains(index)) return;
  if (divides()) return reduce_scatter(graph, index);
  stage.gradient_value = gradient;
}

// What a bucket's gradient goes through once its last micro-batch is in: the mean over ranks, its share of the norm,
// and its rounding's end.
void TrainingSource::reduce(Graph& graph, std::size_t index) {
  Stage& stage = stages_[index];
  if (devices_ > 1 && !divides()) {
    Op op = collective(stage.labels.all_reduce, stage.all_reduce, Phase::Reduce, index);
    op.reads.push_back(stage.gradient_value);
    const ValueId local = stage.gradient_value;
    stage.gradient_value = graph.new_version(stage.gradient);
    op.writes.push_back({stage.gradient_value, local});
    graph.append(std::move(op));
  }
  if (controls_update()) sum_squares(graph, stage, index);
  if (widens_gradients_) widen(graph, stage, index);
  if (subspace_) {
    if ((first_step_ + step_) % subspace_->check_every == 0) fit(graph, index);
    compress(graph, index);
  }
  if (sends_signs() && !controls_update()) compress_momentum(graph, index);
}

void TrainingSource::sum_squares(Graph& graph, Stage& stage, std::size_t index) {
  Op op = new_op(stage.labels.grad_norm, stage.grad_norm, Phase::Reduce, index);
  op.workspace_bytes = stage.norm_workspace;
  op.reads.push_back(stage.gradient_value);
  stage.square_sum_value = graph.new_version(stage.square_sum);
  op.writes.push_back({stage.square_sum_value, kNone});
  op.has_result = true;
  graph.append(std::move(op));
}

void TrainingSource::widen(Graph& graph, Stage& stage, std::size_t index) {
  Op op = new_op(stage.labels.widen, stage.widen, Phase::Reduce, index);
  op.reads.push_back(stage.gradient_value);
  stage.gradient_value = graph.new_version(stage.wide_gradient);
  op.writes.push_back({stage.gradient_value, kNone});
  graph.append(std::move(op));
}

// Reads every bucket's sum of squares, and the loss scale; writes the update's control, and the scale of the next step.
void TrainingSource::control_update(Graph& graph) {
  Op op = new_op(control_label_, control_work_, Phase::Reduce, 0);
  op.layer = kNone;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (!trains(i)) continue;
    CHECK(stages_[i].square_sum_value != kNone, "a step is clipped before all its gradients are final", step_);
    op.reads.push_back(stages_[i].square_sum_value);
  }
  control_value_ = graph.new_version(control_);
  op.writes.push_back({control_value_, kNone});
  if (scales_loss_) {
    op.reads.push_back(latest_loss_scale_);
    const ValueId old = latest_loss_scale_;
    latest_loss_scale_ = graph.new_version(loss_scale_);
    op.writes.push_back({latest_loss_scale_, old});
  }
  op.has_result = true;
  graph.append(std::move(op));
}

// On a GPU, the sums of a field's blocks, which different multiprocessors make. The CPU adds them as it goes.
std::int64_t TrainingSource::norm_workspace(std::size_t index) const {
  if (!gpu_) return 0;
  std::int64_t blocks = 0;
  for (const Field& field : spec(index).layout->fields) blocks = std::max(blocks, norm_blocks(field.elements()));
  constexpr std::int64_t kGranule = 512;  // of LibTorch's CUDA tensors
  return (blocks * size_of(DType::F64) + kGranule - 1) / kGranule * kGranule;
}

// In fp32, LibTorch's step count, and under clipping a scaled copy of the gradient, a chunk of a field at a time.
// Our own updates scale gradients in the one pass that reads them.
std::int64_t TrainingSource::optimizer_workspace(const Layout& layout) const {
  WorkspaceMeter meter;
  meter.take(kStepCountBytes);
  if (!clips()) return meter.peak();
  std::int64_t largest = 0;
  for (const Field& field : layout.fields) largest = std::max(largest, field.elements());
  meter.take(kClippingScalarBytes);
  meter.take(std::min(largest, kOptimizerChunk) * size_of(DType::F32));
  return meter.peak();
}

void TrainingSource::optimize(Graph& graph, std::size_t index) {
  Stage& stage = stages_[index];
  Op op = new_op(stage.labels.optimizer, stage.optimizer, Phase::OptimizerStep, index);
  op.engines |= engine_bit(Engine::CpuOptimizer);
  op.divisible = true;
  op.cut_bytes = plan_.cut_bytes();
  op.workspace_bytes = stage.optimizer_workspace;
  const ValueId before = graph.tensor(stage.parameter).latest;
  CHECK(before != kNone && stage.gradient_value != kNone, spec(index).name, "is updated by nothing", step_);
  op.reads.push_back(stage.gradient_value);
  if (plan_.update_reads_parameter()) op.reads.push_back(before);
  std::vector<Write> states;
  for (TensorId state : stage.states) {
    const ValueId old = graph.tensor(state).latest;
    op.reads.push_back(old);
    states.push_back({graph.new_version(state), old});
  }
  if (controls_update()) op.reads.push_back(control_value_);
  // Under delayed update the next forward still reads the old version, so its storage is not to be taken over.
  const Write parameter{graph.new_version(stage.parameter), delayed_update_ ? kNone : before};
  if (plan_.parameter_leads()) op.writes.push_back(parameter);
  op.writes.insert(op.writes.end(), states.begin(), states.end());
  if (!plan_.parameter_leads()) op.writes.push_back(parameter);
  graph.append(std::move(op));
  stage.parameter_in_use = delayed_update_ ? before : parameter.value;
}

}  // namespace tandem
