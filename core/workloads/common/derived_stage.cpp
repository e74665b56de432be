#include "core/workloads/common/derived_stage.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Gives a pass's operands their places, in the orders that plan.hpp states.
class Places {
 public:
  explicit Places(Pass& pass) : pass_(pass) {}
  void read(OperandKind kind, std::int32_t index) {
    if (Operand* operand = find(kind, index)) operand->read = reads_++;
  }
  void write(OperandKind kind, std::int32_t index) {
    if (Operand* operand = find(kind, index)) operand->write = writes_++;
  }
  // An operand that every such op has, though this pass may not touch it.
  void read_always(OperandKind kind) {
    if (Operand* operand = find(kind, 0)) operand->read = reads_;
    ++reads_;
  }
  void check() const {
    for (const Operand& operand : pass_.operands)
      CHECK((operand.read != kNone) != (operand.write != kNone), pass_.module->name, static_cast<int>(operand.kind));
  }

 private:
  Operand* find(OperandKind kind, std::int32_t index) {
    for (Operand& operand : pass_.operands)
      if (operand.is(kind, index)) return &operand;
    return nullptr;
  }
  Pass& pass_;
  std::int32_t reads_ = 0, writes_ = 0;
};

class StageBuilder {
 public:
  StageBuilder(TrainingPlan& plan, const DerivedStage& stage, const RunsOn& where)
      : plan_(plan), stage_(stage), passes_(derive(stage.module, {gradients(), where})) {
    CHECK(stage.ports.size() == stage.module->inputs.size(), stage.body, stage.ports.size());
  }
  StageSpec build() {
    StageSpec s;
    s.layout = layout_of(*stage_.module);
    s.elements = s.layout->elements;
    s.has_loss = passes_.forward.has_loss();
    if (!s.has_loss) s.output_bytes = local(stage_.module->outputs.at(0)).shape.bytes();
    for (const Kept& kept : passes_.kept) s.saved.push_back({kept.name, kept.shape.type, kept.shape.bytes()});
    s.reads_inputs = has(PortSource::Inputs), s.reads_targets = has(PortSource::Targets);
    s.saves_input = keeps(PortSource::StageBefore), s.backward_reads_inputs = keeps(PortSource::Inputs);
    s.backward_reads_targets = keeps(PortSource::Targets);
    s.saves_output = passes_.keeps_outputs != 0;
    s.backward_reads_parameter = passes_.backward_reads_weights;
    s.passes_gradient = has(PortSource::StageBefore);
    s.recomputable = stage_.recomputable;
    s.forward = add_forward(passes_.forward, "forward", /*writes_output=*/true);
    if (stage_.recomputable) {
      s.forward_light = add_forward(passes_.forward_light, "forward_light", true);
      s.recompute = add_forward(passes_.recompute, "recompute", false);
    }
    s.backward = add_backward(passes_.backward, s, false);
    s.backward_accumulate = add_backward(passes_.backward_accumulate, s, true);
    return s;
  }

 private:
  const Local& local(LocalId id) const { return stage_.module->locals[static_cast<std::size_t>(id)]; }
  Bits gradients() const {
    Bits bits = 0;
    for (std::size_t i = 0; i < stage_.ports.size(); ++i)
      if (stage_.ports[i] == PortSource::StageBefore) bits |= bit(i);
    return bits;
  }
  bool has(PortSource source) const { return port(source) != kNone; }
  std::int32_t port(PortSource source) const {
    for (std::size_t i = 0; i < stage_.ports.size(); ++i)
      if (stage_.ports[i] == source) return static_cast<std::int32_t>(i);
    return kNone;
  }
  bool keeps(PortSource source) const {
    return has(source) && (passes_.keeps_inputs & bit(static_cast<std::size_t>(port(source)))) != 0;
  }
  void write_kept(Places& places) {
    for (std::size_t i = 0; i < passes_.kept.size(); ++i) places.write(OperandKind::Kept, static_cast<std::int32_t>(i));
  }
  OpSpecIndex add_forward(Pass pass, const char* name, bool writes_output) {
    Places places(pass);
    places.read_always(OperandKind::Weights);
    for (const PortSource source : {PortSource::StageBefore, PortSource::Inputs, PortSource::Targets})
      if (has(source)) places.read(OperandKind::Input, port(source));
    if (writes_output) places.write(OperandKind::Output, 0);
    write_kept(places);
    places.check();
    return add(std::move(pass), name, false);
  }
  OpSpecIndex add_backward(Pass pass, const StageSpec& s, bool accumulates) {
    Places places(pass);
    places.read(OperandKind::OutputGradient, 0);
    if (s.backward_reads_parameter) places.read_always(OperandKind::Weights);
    if (s.saves_input) places.read(OperandKind::Input, port(PortSource::StageBefore));
    if (s.saves_output) places.read(OperandKind::Output, 0);
    for (std::size_t i = 0; i < passes_.kept.size(); ++i) places.read(OperandKind::Kept, static_cast<std::int32_t>(i));
    if (s.backward_reads_inputs) places.read(OperandKind::Input, port(PortSource::Inputs));
    if (s.backward_reads_targets) places.read(OperandKind::Input, port(PortSource::Targets));
    places.write(OperandKind::WeightGradient, 0);
    if (s.passes_gradient) places.write(OperandKind::InputGradient, port(PortSource::StageBefore));
    places.check();
    return add(std::move(pass), "backward", accumulates);
  }
  OpSpecIndex add(Pass pass, const std::string& name, bool accumulates) {
    pass.micro_batches = stage_.micro_batches;
    std::vector<std::int64_t> sizes = stage_.sizes;
    sizes.push_back(accumulates);
    const std::int64_t workspace = pass.workspace_bytes;
    Work work{stage_.body + "." + name, stage_.module->type, std::move(sizes), pass.kernels, nullptr};
    work.pass = std::make_shared<const Pass>(std::move(pass));
    return plan_.add({std::move(work), workspace});
  }

  TrainingPlan& plan_;
  const DerivedStage& stage_;
  Passes passes_;
};

}  // namespace

StageSpec derived_stage(TrainingPlan& plan, const DerivedStage& stage, const RunsOn& where) {
  return StageBuilder(plan, stage, where).build();
}

}  // namespace tandem
