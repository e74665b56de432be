#include "core/transforms/common/named_moments.hpp"

#include <string>

#include "core/base/check.hpp"
#include "core/formats/masters.hpp"

namespace tandem {

void name_moments(TrainingPlan& plan) {
  if (plan.master != Master::InState) return;
  plan.states = {{std::string(kMaster)}, {"adam_m"}, {"adam_v"}};
  plan.master = Master::FirstState;
}

TensorId state_named(const StepContext& context, std::size_t index, std::string_view name) {
  const std::vector<StateSpec>& states = context.plan().states;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i].name == name) return context.stages[index].states[i];
  CHECK(false, context.spec(index).name, "has no", name);
  return kNone;
}

void write_by_moments(StepContext& context, Graph& graph, Op& op, std::size_t index) {
  StepStage& stage = context.stages[index];
  const TensorId m = state_named(context, index, "adam_m"), v = state_named(context, index, "adam_v");
  const ValueId before = graph.tensor(stage.parameter).latest;
  if (context.plan().update_reads_parameter()) op.reads.push_back(before);
  op.writes.push_back({graph.new_version(stage.parameter), before});
  for (const TensorId state : stage.states)
    if (state != m && state != v) update_in_place(graph, op, state);
  stage.parameter_in_use = op.writes.front().value;
}

}  // namespace tandem
