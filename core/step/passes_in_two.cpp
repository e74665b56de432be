// A backward in two ops: gradients of a stage's inputs, and later those of its weights. Each names its operands.
#include <utility>

#include "core/base/check.hpp"
#include "core/model/passes.hpp"
#include "core/step/passes.hpp"

namespace tandem {

void PassesPart::backward_inputs(Graph& graph, std::size_t index) {
  if (passes_gradient_on(index)) return;
  gather_again(graph, index);
  send_back(graph, index);
  hand_gradients_on(index);
  backward_half(graph, index, context_.spec(index).backward_inputs, stages_[index].labels.backward_inputs);
}

void PassesPart::backward_weights(Graph& graph, std::size_t index) {
  backward_half(graph, index, context_.spec(index).backward_weights, stages_[index].labels.backward_weights);
}

namespace {

bool is_bucket(const HalfOperand& operand) {
  return operand.kind == OperandKind::Weights || operand.kind == OperandKind::FrozenWeights;
}

}  // namespace

ValueId PassesPart::read_by_half(std::size_t index, const HalfOperand& operand) const {
  const StageSpec& s = context_.spec(index);
  const Stage& stage = stages_[index];
  const auto i = static_cast<std::size_t>(operand.index);
  switch (operand.kind) {
    case OperandKind::Weights:
      return context_.parameter_of(index);
    case OperandKind::FrozenWeights:
      if (!s.trains()) return context_.parameter_of(index);
      for (const PortSpec& port : s.inputs)
        if (port.from == PortSpec::From::Bucket && port.field == kNone) return value_of(port);
      return kNone;
    case OperandKind::Input:
      return value_of(s.inputs.at(i));
    case OperandKind::Output:
      return result_of(stage).output_values.at(i);
    case OperandKind::Kept:
      return result_of(stage).saved_values.at(i);
    case OperandKind::OutputGradient:
      return stage.output_gradient_values.at(i);
    case OperandKind::Contribution:
      return stage.contribution_value;
    case OperandKind::Handed:
      return stage.handed_values.at(i);
    default:
      CHECK(false, s.name, "reads what a backward does not", static_cast<int>(operand.kind));
  }
}

void PassesPart::write_by_half(Graph& graph, std::size_t index, const HalfOperand& operand, Op& op) {
  const auto i = static_cast<std::size_t>(operand.index);
  if (operand.kind == OperandKind::WeightGradient) return write_weight_gradient(graph, index, op);
  if (operand.kind == OperandKind::InputGradient) return write_gradient(graph, context_.spec(index).inputs.at(i), op);
  CHECK(operand.kind == OperandKind::Handed, context_.spec(index).name, static_cast<int>(operand.kind));
  Stage& stage = stages_[index];
  stage.handed_values.at(i) = graph.new_version(stage.handed.at(i));
  op.writes.push_back({stage.handed_values[i], kNone});
}

void PassesPart::backward_half(Graph& graph, std::size_t index, const BackwardHalf& half, std::int32_t label) {
  if (half.op == kNone) return;
  const StageSpec& s = context_.spec(index);
  bool adds = false;
  for (const HalfOperand& written : half.writes) adds = adds || written.kind == OperandKind::WeightGradient;
  adds = adds && adds_gradient(index);
  Op op = op_of(label, adds ? half.accumulate : half.op, Phase::Backward, index);
  bool uses_bucket = false;
  for (const HalfOperand& operand : half.reads) uses_bucket = uses_bucket || is_bucket(operand);
  for (const auto& transform : context_.transforms)
    if (uses_bucket) transform->before_use(graph, index, Phase::Gather);
  for (const HalfOperand& operand : half.reads) {
    op.reads.push_back(read_by_half(index, operand));
    CHECK(op.reads.back() != kNone, s.name, "goes backward before what comes after it", context_.step,
          context_.micro_batch);
  }
  if (adds) op.reads.push_back(context_.stages[index].gradient_value);
  if (s.transfer != nullptr) context_.transfer(graph, op, index, /*backward=*/true);
  if (s.exchange != Exchange::None) context_.exchange(graph, op, index);
  for (const HalfOperand& operand : half.writes) write_by_half(graph, index, operand, op);
  if (half.scales_loss && context_.scales_loss()) op.reads.push_back(context_.loss_scale);
  graph.append(std::move(op));
}

}  // namespace tandem
