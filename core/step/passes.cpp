#include "core/step/passes.hpp"

#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/half_labels.hpp"

namespace tandem {

void PassesPart::forget_works(Graph& graph) {
  for (const WorkId work : works_) graph.forget_pass(work);
  works_.clear();
}

void PassesPart::add_works(Graph& graph) {
  works_.clear();
  for (const OpSpec& op_spec : context_.plan().ops) works_.push_back(graph.add_work(op_spec.work));
}

void PassesPart::add_stage(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  CHECK(stages_.size() == index, "stages come in forward order", s.name, stages_.size(), index);
  for (const PortSpec& port : s.inputs)
    CHECK(port.from == PortSpec::From::Batch || port.index < static_cast<std::int32_t>(index), s.name, port.index);
  Stage& stage = stages_.emplace_back();
  const auto add = [&](const std::string& name, DType type, std::int64_t bytes, bool persistent = false,
                       Role role = Role::Activation) {
    Tensor tensor = context_.tensor_of(index, prefix_ + name, role, type, bytes);
    tensor.persistent = persistent;
    return graph.add_tensor(std::move(tensor));
  };
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    const OutputSpec& output = s.outputs[i];
    const std::string number = i == 0 ? "" : std::to_string(i);
    stage.outputs.push_back(add("output" + number, output.type, output.bytes, output.persistent, output.role));
    stage.output_gradients.push_back(output.gradient ? add("output_gradient" + number, output.type, output.bytes)
                                                     : kNone);
  }
  if (s.transfer != nullptr) add_received(graph, index);
  stage.output_values.assign(s.outputs.size(), kNone);
  stage.output_gradient_values.assign(s.outputs.size(), kNone);
  for (const TensorSpec& saved : s.saved) stage.saved.push_back(add(saved.name, saved.type, saved.bytes));
  stage.saved_values.assign(s.saved.size(), kNone);
  for (const TensorSpec& handed : s.handed) stage.handed.push_back(add(handed.name, handed.type, handed.bytes));
  stage.handed_values.assign(s.handed.size(), kNone);
  for (const PortSpec& port : s.inputs)
    if (port.from == PortSpec::From::Bucket && port.gradient && !port.adds)
      stages_[static_cast<std::size_t>(port.index)].contribution =
          add("tied_gradient", context_.plan().precision, port.gradient_bytes);
  stage.labels = {graph.intern(s.name + ".forward"),
                  graph.intern(s.name + ".recompute"),
                  graph.intern(s.name + ".backward"),
                  graph.intern(s.name + ".evaluate"),
                  s.goes_back_in_two() ? graph.intern(s.name + std::string(kBackwardInputs)) : kNone,
                  s.goes_back_in_two() ? graph.intern(s.name + std::string(kBackwardWeights)) : kNone};
}

// It is no model state: another rank updates it.
void PassesPart::add_received(Graph& graph, std::size_t index) {
  const TransferSpec& transfer = *context_.spec(index).transfer;
  if (!transfer.receives || !transfer.of_bucket) return;
  const DType type = context_.plan().precision;
  Tensor tensor =
      context_.tensor_of(index, prefix_ + "whole_parameter", Role::Activation, type, transfer.elements * size_of(type));
  tensor.reported_as = Role::Parameter;
  tensor.layout = transfer.layout;
  tensor.persistent = true;
  stages_[index].received = graph.add_tensor(std::move(tensor));
}

Op PassesPart::op_of(std::int32_t label, OpSpecIndex op_spec, Phase phase, std::size_t index) const {
  CHECK(op_spec != kNone, context_.spec(index).name, name_of(phase));
  Op op = context_.new_op(label, works_[static_cast<std::size_t>(op_spec)], phase, index);
  op.workspace_bytes = context_.plan().ops[static_cast<std::size_t>(op_spec)].workspace_bytes;
  if (context_.spec(index).may_run_on_cpu) op.engines |= engine_bit(Engine::CpuCompute);
  context_.place(op, index);
  return op;
}

// The version in hand of what a port reads.
ValueId PassesPart::value_of(const PortSpec& port) const {
  const auto index = static_cast<std::size_t>(port.index);
  if (port.from == PortSpec::From::Batch) return batch_.value(index);
  if (port.from == PortSpec::From::Bucket) return context_.parameter_of(index);
  return stages_[index].output_values[static_cast<std::size_t>(port.output)];
}

void PassesPart::read_forward_operands(std::size_t index, Op& op) const {
  using From = PortSpec::From;
  const StageSpec& s = context_.spec(index);
  if (s.elements > 0) op.reads.push_back(context_.parameter_of(index));
  for (const From from : {From::Bucket, From::Stage, From::Batch})
    for (const PortSpec& port : s.inputs)
      if (port.from == from) op.reads.push_back(value_of(port));
  for (const ValueId read : op.reads) CHECK(read != kNone, s.name, "reads what nobody wrote");
}

namespace {

// A bucket comes from another rank once a step.
bool is_there(const StageSpec& stage, std::int32_t micro_batch) {
  return stage.transfer != nullptr && stage.transfer->of_bucket && micro_batch > 0;
}

}  // namespace

void PassesPart::forward(Graph& graph, std::size_t first, std::size_t end) {
  for (const auto& transform : context_.transforms) transform->begin_pass(Phase::Forward);
  for (std::size_t i = first; i < end; ++i) {
    const StageSpec& s = context_.spec(i);
    if (s.held_for != kNone || is_there(s, context_.micro_batch)) continue;
    const bool light = context_.recomputes[i];
    append_forward(graph, i, op_of(stages_[i].labels.forward, light ? s.forward_light : s.forward, Phase::Forward, i),
                   /*writes_output=*/true, /*saves=*/!light);
    if (light || s.saved.empty()) continue;
    for (const auto& transform : context_.transforms) transform->after_forward(graph, i, *this);
  }
}

void PassesPart::evaluate(Graph& graph) {
  for (const auto& transform : context_.transforms) transform->begin_pass(Phase::Evaluate);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const StageSpec& s = context_.spec(i);
    if (s.held_for != kNone) continue;
    const bool light = s.forward_light != kNone;
    append_forward(graph, i, op_of(stages_[i].labels.evaluate, light ? s.forward_light : s.forward, Phase::Evaluate, i),
                   /*writes_output=*/true, /*saves=*/!light);
  }
}

void PassesPart::recompute(Graph& graph, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i <= last; ++i) {
    const StageSpec& s = context_.spec(i);
    const bool goes_on = i < last;
    append_forward(graph, i, op_of(stages_[i].labels.recompute, goes_on ? s.forward : s.recompute, Phase::Recompute, i),
                   /*writes_output=*/goes_on, /*saves=*/true);
  }
}

// `saves`: for a backward.
void PassesPart::append_forward(Graph& graph, std::size_t index, Op op, bool writes_output, bool saves) {
  Stage& stage = stages_[index];
  if (context_.spec(index).exchange != Exchange::None && !writes_output) return;  // nobody reads it
  if (context_.spec(index).exchange == Exchange::Backward) {                      // all ranks have it
    stage.output_values.front() = value_of(context_.spec(index).inputs.front());
    return;
  }
  const Phase phase = op.phase == Phase::Evaluate ? Phase::Evaluate : Phase::Gather;
  for (const auto& transform : context_.transforms) transform->before_use(graph, index, phase);
  read_forward_operands(index, op);
  if (context_.spec(index).exchange != Exchange::None) context_.exchange(graph, op, index);
  if (context_.spec(index).transfer != nullptr) context_.transfer(graph, op, index, /*backward=*/false);
  if (saves && context_.spec(index).loss_gradient_in_forward && context_.scales_loss())
    op.reads.push_back(context_.loss_scale);
  for (std::size_t i = 0; writes_output && i < stage.outputs.size(); ++i) {
    const std::int64_t bytes = context_.spec(index).outputs[i].bytes, there = graph.tensor(stage.outputs[i]).bytes;
    CHECK(bytes == there, context_.spec(index).name, "writes more or less than it did", bytes, there);
    stage.output_values[i] = graph.new_version(stage.outputs[i]);
    op.writes.push_back({stage.output_values[i], written_over(graph, index, op, stage.output_values[i])});
  }
  if (stage.received != kNone) write_received(graph, index, op);
  CHECK(context_.stages[index].carried.empty() || op.phase == Phase::Forward, context_.spec(index).name,
        "would carry on from what the same step left", name_of(op.phase));
  for (const TensorId carried : context_.stages[index].carried) update_in_place(graph, op, carried);
  for (std::size_t i = 0; saves && i < stage.saved.size(); ++i) {
    stage.saved_values[i] = graph.new_version(stage.saved[i]);
    op.writes.push_back({stage.saved_values[i], kNone});
  }
  op.has_result = context_.spec(index).has_result;
  if (context_.spec(index).chooses()) op.phase = Phase::Sample, op.grows = true;
  graph.append(std::move(op));
}

// Of what rounds of a ring have made so far, which has a gradient, no backward makes one: it is that of the result.
bool PassesPart::hands_on(std::size_t index, const PortSpec& port) const {
  const StageSpec& s = context_.spec(index);
  if (s.backward == kNone || s.exchange != Exchange::None || s.transfer != nullptr) return false;
  return port.from == PortSpec::From::Stage && !port.gradient && context_.plan().output_of(port).gradient;
}

// What an output takes the place of: the summand of a sum, or what rounds have made so far.
ValueId PassesPart::written_over(const Graph& graph, std::size_t index, const Op& op, ValueId output) const {
  if (context_.spec(index).exchange == Exchange::Forward) return op.reads.front();
  for (const PortSpec& port : context_.spec(index).inputs)
    if (hands_on(index, port) && graph.value(value_of(port)).bytes == graph.value(output).bytes) return value_of(port);
  return kNone;
}

// In the place of the one before.
void PassesPart::write_received(Graph& graph, std::size_t index, Op& op) {
  ValueId& whole = context_.stages[index].whole_parameter;
  const ValueId before = whole;
  whole = graph.new_version(stages_[index].received);
  op.writes.push_back({whole, before});
}

bool PassesPart::adds_gradient(std::size_t index) const {
  return !context_.begins_sum() && context_.adds_gradients(index) && context_.trains(index);
}

void PassesPart::read_backward_operands(std::size_t index, Op& op) const {
  using From = PortSpec::From;
  const StageSpec& s = context_.spec(index);
  const Stage& stage = stages_[index];
  for (std::size_t i = 0; i < s.outputs.size(); ++i)
    if (s.outputs[i].gradient) op.reads.push_back(stage.output_gradient_values[i]);
  if (stage.received != kNone) op.reads.push_back(stage.contribution_value);
  if (s.backward_reads_parameter) op.reads.push_back(context_.parameter_of(index));
  const auto read_ports = [&](From from) {
    for (const PortSpec& port : s.inputs)
      if (port.from == from && port.backward_reads) op.reads.push_back(value_of(port));
  };
  read_ports(From::Bucket);
  read_ports(From::Stage);
  for (std::size_t i = 0; i < s.outputs.size(); ++i)
    if (s.outputs[i].backward_reads) op.reads.push_back(result_of(stage).output_values[i]);
  for (ValueId saved : result_of(stage).saved_values) op.reads.push_back(saved);
  read_ports(From::Batch);
  if (s.contributed) op.reads.push_back(stage.contribution_value);
  if (adds_gradient(index)) op.reads.push_back(context_.stages[index].gradient_value);
  for (const ValueId read : op.reads)
    CHECK(read != kNone, s.name, "goes backward before what comes after it", context_.step, context_.micro_batch);
}

// Of what a port reads: the latest version of its gradient.
ValueId& PassesPart::gradient_of(const PortSpec& port) {
  Stage& stage = stages_[static_cast<std::size_t>(port.index)];
  return port.from == PortSpec::From::Bucket ? stage.contribution_value
                                             : stage.output_gradient_values[static_cast<std::size_t>(port.output)];
}

void PassesPart::write_gradients(Graph& graph, std::size_t index, PortSpec::From from, Op& op) {
  for (const PortSpec& port : context_.spec(index).inputs)
    if (port.from == from && port.gradient) write_gradient(graph, port, op);
}

void PassesPart::write_gradient(Graph& graph, const PortSpec& port, Op& op) {
  const Stage& read = stages_[static_cast<std::size_t>(port.index)];
  ValueId& gradient = gradient_of(port);
  const ValueId so_far = port.adds ? gradient : kNone;
  if (so_far != kNone) op.reads.push_back(so_far);
  gradient = graph.new_version(port.from == PortSpec::From::Bucket
                                   ? read.contribution
                                   : read.output_gradients[static_cast<std::size_t>(port.output)]);
  op.writes.push_back({gradient, so_far});
}

void PassesPart::write_weight_gradient(Graph& graph, std::size_t index, Op& op) {
  StepStage& bucket = context_.stages[index];
  const ValueId so_far = adds_gradient(index) ? bucket.gradient_value : kNone;
  bucket.gradient_value = graph.new_version(bucket.backward_writes);
  op.writes.push_back({bucket.gradient_value, so_far});
}

// Each rank's summand has the sum's gradient.
bool PassesPart::passes_gradient_on(std::size_t index) {
  const StageSpec& s = context_.spec(index);
  if (s.exchange != Exchange::Forward) return false;
  CHECK(!s.inputs.front().adds, s.name, "is read by others beside the sum");
  gradient_of(s.inputs.front()) = stages_[index].output_gradient_values.front();
  return true;
}

// Nobody keeps all rows for the backward, of which each rank has its own: they are brought together once more, while
// what comes after goes backward (Korthikanti et al., 2022, section 4.2.2).
void PassesPart::gather_again(Graph& graph, std::size_t index) {
  for (const PortSpec& port : context_.spec(index).inputs) {
    const auto from = static_cast<std::size_t>(port.index);
    if (port.from != PortSpec::From::Stage || !port.backward_reads) continue;
    if (context_.spec(from).exchange != Exchange::Gather || context_.recomputes[from]) continue;
    append_forward(graph, from,
                   op_of(stages_[from].labels.recompute, context_.spec(from).forward, Phase::Recompute, from),
                   /*writes_output=*/true, /*saves=*/false);
  }
}

// Nobody keeps what has come round a ring, but the last of it: while it goes backward, it is sent back the way that it
// came, for the round before.
void PassesPart::send_back(Graph& graph, std::size_t index) {
  for (const PortSpec& port : context_.spec(index).inputs) {
    const auto from = static_cast<std::size_t>(port.index);
    if (port.from != PortSpec::From::Stage || !port.backward_reads) continue;
    if (context_.spec(from).exchange != Exchange::Shift) continue;
    const PortSpec& before = context_.spec(from).inputs.front();
    Stage& owner = stages_[static_cast<std::size_t>(before.index)];
    const auto output = static_cast<std::size_t>(before.output);
    Op op = op_of(stages_[from].labels.recompute, context_.spec(from).recompute, Phase::Recompute, from);
    op.reads.push_back(value_of(port));
    context_.exchange(graph, op, from);
    owner.output_values[output] = graph.new_version(owner.outputs[output]);
    op.writes.push_back({owner.output_values[output], kNone});
    graph.append(std::move(op));
  }
}

void PassesPart::hand_gradients_on(std::size_t index) {
  const Stage& stage = stages_[index];
  for (const PortSpec& port : context_.spec(index).inputs) {
    if (!hands_on(index, port)) continue;
    gradient_of(port) = stage.output_gradient_values.front();
    stages_[static_cast<std::size_t>(port.index)].result =
        stage.result == kNone ? static_cast<std::int32_t>(index) : stage.result;
  }
}

void PassesPart::backward(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  if (passes_gradient_on(index)) return;
  gather_again(graph, index);
  send_back(graph, index);
  hand_gradients_on(index);
  const bool adds = adds_gradient(index);
  Op op = op_of(stages_[index].labels.backward, adds ? s.backward_accumulate : s.backward, Phase::Backward, index);
  for (const auto& transform : context_.transforms)
    if (s.backward_reads_parameter || s.backward_reads_frozen()) transform->before_use(graph, index, Phase::Gather);
  read_backward_operands(index, op);
  if (s.transfer != nullptr) context_.transfer(graph, op, index, /*backward=*/true);
  if (s.exchange != Exchange::None) context_.exchange(graph, op, index);
  if (context_.trains(index)) write_weight_gradient(graph, index, op);
  write_gradients(graph, index, PortSpec::From::Stage, op);
  write_gradients(graph, index, PortSpec::From::Bucket, op);
  if (s.has_loss && !s.loss_gradient_in_forward && context_.scales_loss()) op.reads.push_back(context_.loss_scale);
  graph.append(std::move(op));
}

}  // namespace tandem
