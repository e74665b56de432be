#include "core/step/pass_operands.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

using From = PortSpec::From;

class Places {
 public:
  Places(Pass pass, const StageSpec& stage) : pass_(std::move(pass)), stage_(stage) {}
  // One that the op has; this pass may not touch it.
  void read(OperandKind kind, std::size_t index, std::int32_t field = kNone) {
    if (Operand* operand = find(kind, index)) operand->read = reads_, operand->field = field;
    ++reads_;
  }
  void write(OperandKind kind, std::size_t index) {
    if (Operand* operand = find(kind, index)) operand->write = writes_;
    ++writes_;
  }
  void read_ports(From from, bool backward) {
    for (std::size_t p = 0; p < stage_.inputs.size(); ++p) {
      const PortSpec& port = stage_.inputs[p];
      if (port.from != from || (backward && !port.backward_reads)) continue;
      if (from == From::Bucket && port.field == kNone)
        read(OperandKind::FrozenWeights, 0);
      else
        read(OperandKind::Input, p, from == From::Bucket ? port.field : kNone);
    }
  }
  void read_own_weights() { read(stage_.trained ? OperandKind::Weights : OperandKind::FrozenWeights, 0); }
  // What the stage saves, and what another stage saves that it reads as its own: of a ring's last round.
  void read_saved() {
    for (std::size_t i = 0; i < stage_.saved.size() || find(OperandKind::Kept, i) != nullptr; ++i)
      read(OperandKind::Kept, i);
  }
  // Of later stages that read weights of this bucket: one weight's.
  void read_contribution() {
    for (Operand& operand : pass_.operands)
      if (operand.kind == OperandKind::Contribution) operand.read = reads_;
    reads_ += stage_.contributed;
  }
  void write_gradients(From from) {
    for (std::size_t p = 0; p < stage_.inputs.size(); ++p)
      if (stage_.inputs[p].from == from && stage_.inputs[p].gradient) write(OperandKind::InputGradient, p);
  }
  Pass take() {
    for (const Operand& operand : pass_.operands)
      CHECK((operand.read != kNone) != (operand.write != kNone), pass_.module->name, static_cast<int>(operand.kind),
            operand.index);
    return std::move(pass_);
  }

 private:
  Operand* find(OperandKind kind, std::size_t index) {
    for (Operand& operand : pass_.operands)
      if (operand.is(kind, static_cast<std::int32_t>(index))) return &operand;
    return nullptr;
  }
  Pass pass_;
  const StageSpec& stage_;
  std::int32_t reads_ = 0, writes_ = 0;
};

}  // namespace

Pass place_forward(Pass pass, const StageSpec& stage, bool writes_outputs) {
  Places places(std::move(pass), stage);
  if (stage.elements > 0) places.read_own_weights();
  for (const From from : {From::Bucket, From::Stage, From::Batch}) places.read_ports(from, false);
  for (std::size_t i = 0; writes_outputs && i < stage.outputs.size(); ++i) places.write(OperandKind::Output, i);
  for (std::size_t i = 0; i < stage.carried.size(); ++i) places.write(OperandKind::Carried, i);
  for (std::size_t i = 0; i < stage.saved.size(); ++i) places.write(OperandKind::Kept, i);
  return places.take();
}

Pass place_backward(Pass pass, const StageSpec& stage) {
  Places places(std::move(pass), stage);
  for (std::size_t i = 0; i < stage.outputs.size(); ++i)
    if (stage.outputs[i].gradient) places.read(OperandKind::OutputGradient, i);
  if (stage.backward_reads_parameter) places.read_own_weights();
  places.read_ports(From::Bucket, true);
  places.read_ports(From::Stage, true);
  for (std::size_t i = 0; i < stage.outputs.size(); ++i)
    if (stage.outputs[i].backward_reads) places.read(OperandKind::Output, i);
  places.read_saved();
  places.read_ports(From::Batch, true);
  places.read_contribution();
  if (stage.trains()) places.write(OperandKind::WeightGradient, 0);
  places.write_gradients(From::Stage);
  places.write_gradients(From::Bucket);
  return places.take();
}

Pass place_half(Pass pass, const StageSpec& stage, Gradients of, BackwardHalf& half) {
  const auto is_written = [&](const Operand& operand) {
    return operand.kind == OperandKind::WeightGradient || operand.kind == OperandKind::InputGradient ||
           (operand.kind == OperandKind::Handed && of == Gradients::Inputs);
  };
  half.reads.clear(), half.writes.clear();
  for (Operand& operand : pass.operands) {
    std::vector<HalfOperand>& list = is_written(operand) ? half.writes : half.reads;
    (is_written(operand) ? operand.write : operand.read) = static_cast<std::int32_t>(list.size());
    if (operand.kind == OperandKind::Input)
      if (const PortSpec& port = stage.inputs.at(static_cast<std::size_t>(operand.index)); port.from == From::Bucket)
        operand.field = port.field;
    list.push_back({operand.kind, operand.index});
  }
  return pass;
}

}  // namespace tandem
