#include "core/step/update.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/formats/sums.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/meter.hpp"
#include "core/step/field_update.hpp"

namespace tandem {

std::string name_with_states(const OptimizerOptions& optimizer) {
  std::string name = optimizer.name;
  if (optimizer.state_bits < 32) name.append("_").append(std::to_string(optimizer.state_bits)).append("bit");
  return name;
}

// In fp32, for what is left of a field after whole vectors: LibTorch's step count, and under clipping a scaled copy of
// the gradient. Our own updates scale gradients in the one pass that reads them.
std::int64_t optimizer_workspace(const StepContext& context, const Layout& layout) {
  const TrainingPlan& plan = context.plan();
  if (!plan.updates_by_element())
    return field_update_workspace(layout, plan.precision, plan.copies_parameter(), context.options.clips(),
                                  context.options.gpu);
  WorkspaceMeter meter;
  meter.take(kStepCountBytes);
  if (!context.options.clips()) return meter.peak();
  meter.take(kClippingScalarBytes);
  meter.take(kWholeVector * size_of(DType::F32));
  return meter.peak();
}

void UpdatePart::add_stage(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  const TrainingPlan& plan = context_.plan();
  StepStage& stage = context_.stages[index];
  stage.optimizer_label = graph.intern(s.name + ".optimizer");
  if (plan.optimizer_fixed_ns == 0 && (plan.library_updates() || !plan.updates_by_element()))
    stage.optimizer_workspace = optimizer_workspace(context_, *s.layout);
  const auto [found, fresh] = works_.try_emplace({s.elements, context_.share_of(s).parts}, kNone);
  if (fresh) {
    add_bucket_works(graph, s, stage);
    found->second = stage.optimizer;
  }
  stage.optimizer = found->second;
}

// The work, which depends on a bucket's size alone, and on that of the part.
void UpdatePart::add_bucket_works(Graph& graph, const StageSpec& s, StepStage& stage) {
  const TrainingPlan& plan = context_.plan();
  const std::int64_t parts = context_.share_of(s).parts, elements = s.elements / parts;
  const std::int64_t bytes = elements * size_of(plan.precision);
  std::int64_t state_bytes = 0;
  for (std::size_t i = 0; i < plan.states.size(); ++i) state_bytes += graph.tensor(stage.states[i]).bytes;
  // Read the gradient and what is updated, write what is updated; a parameter beside a master copy is written only.
  const std::int64_t gradient_bytes = elements * size_of(context_.gradient_type);
  std::int64_t traffic = gradient_bytes + 2 * state_bytes + bytes;
  if (plan.update_reads_parameter()) traffic += bytes;
  if (!plan.updates_by_element()) traffic += elements * plan.optimizer->passes_bytes;
  const bool clips = context_.options.clips();
  Work optimizer{"optimizer." + name_with_states(context_.options.optimizer), plan.precision, {elements, clips}, {}};
  optimizer.kernels.push_back(plan.optimizer_fixed_ns > 0 ? fixed_kernel(plan.optimizer_fixed_ns / parts)
                                                          : optimizer_kernel(elements, traffic));
  // In fp32, under delayed update, the parameters are copied before they are updated; in 16 bits one pass does it all.
  if (plan.precision == DType::F32 && context_.delayed_update) optimizer.kernels.push_back(memory_kernel(2 * bytes));
  stage.optimizer = graph.add_work(std::move(optimizer));
}

void UpdatePart::optimize(Graph& graph, std::size_t index) {
  const TrainingPlan& plan = context_.plan();
  StepStage& stage = context_.stages[index];
  Op op = context_.new_op(stage.optimizer_label, stage.optimizer, Phase::OptimizerStep, index);
  op.engines |= engine_bit(Engine::CpuOptimizer);
  op.divisible = plan.updates_by_element();
  if (op.divisible) op.cut_bytes = plan.cut_bytes();
  op.workspace_bytes = stage.optimizer_workspace;
  const ValueId before = graph.tensor(stage.parameter).latest;
  CHECK(before != kNone && stage.gradient_value != kNone, context_.spec(index).name, "is updated by nothing",
        context_.step);
  op.reads.push_back(stage.gradient_value);
  if (plan.update_reads_parameter()) op.reads.push_back(before);
  std::vector<Write> states;
  for (TensorId state : stage.states) {
    const ValueId old = graph.tensor(state).latest;
    op.reads.push_back(old);
    states.push_back({graph.new_version(state), old});
  }
  if (context_.controls_update()) op.reads.push_back(context_.control);
  // Under delayed update the next forward still reads the old version, so its storage is not to be taken over.
  const bool delayed = context_.delayed_update;
  const Write parameter{graph.new_version(stage.parameter), delayed ? kNone : before};
  if (plan.parameter_leads()) op.writes.push_back(parameter);
  op.writes.insert(op.writes.end(), states.begin(), states.end());
  if (!plan.parameter_leads()) op.writes.push_back(parameter);
  graph.append(std::move(op));
  stage.parameter_in_use = delayed ? before : parameter.value;
}

}  // namespace tandem
