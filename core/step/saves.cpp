#include "core/step/saves.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

// Bytes and checksum of what was written: SaveToken of runtime/checkpoint.
constexpr std::int64_t kTokenBytes = 24;

TensorId add_token(Graph& graph, const std::string& name) {
  return add_plain_tensor(graph, name, Role::Scalar, DType::I64, kTokenBytes);
}

}  // namespace

void SavesPart::add(Graph& graph) {
  if (!context_.options.saves) return;
  const TrainingPlan& plan = context_.plan();
  const bool delayed = context_.delayed_update;
  for (std::size_t i = 0; i < context_.stage_count(); ++i) {
    stage_saves_.emplace_back();
    if (!context_.trains(i)) continue;  // what is frozen begins as it began
    const StepStage& stage = context_.stages[i];
    const StageSpec& s = context_.spec(i);
    std::int64_t bytes = plan.parameter_leads() ? graph.tensor(stage.parameter).bytes : 0;
    for (TensorId state : stage.states) bytes += graph.tensor(state).bytes;
    if (delayed) bytes += graph.tensor(stage.parameter).bytes;
    StageSave& save = stage_saves_.back();
    save.label = graph.intern(s.name + ".save");
    save.token = add_token(graph, s.name + ".saved");
    save.work = graph.add_work({"checkpoint.save", plan.precision, {s.elements, delayed}, {memory_kernel(bytes)}});
  }
  const auto tokens = static_cast<std::int64_t>(context_.stage_count());
  commit_.label = graph.intern("checkpoint.commit");
  commit_.token = add_token(graph, "checkpoint.committed");
  commit_.work = graph.add_work(
      {"checkpoint.commit", plan.precision, {delayed, context_.scales_loss()}, {memory_kernel(tokens * kTokenBytes)}});
}

// Under delayed update the first step uses the parameters from before the last update, and the second the latest: two
// versions, in the order in which the run that saved them made them.
void SavesPart::load(Graph& graph, std::size_t index) {
  StepStage& stage = context_.stages[index];
  const StageSpec& s = context_.spec(index);
  ValueId in_use = kNone;
  if (context_.delayed_update) {
    const WorkId work = graph.add_work({"checkpoint.load_in_use",
                                        context_.plan().precision,
                                        {s.elements},
                                        {memory_kernel(graph.tensor(stage.parameter).bytes)}});
    Op op = context_.loader_op(graph.intern(s.name + ".load_in_use"), work, Phase::Load, index);
    op.step = kNone;
    in_use = graph.new_version(stage.parameter);
    op.writes.push_back({in_use, kNone});
    graph.append(std::move(op));
  }
  graph.append(buckets_.load_op(graph, index, "checkpoint.load", stage.states));
  if (in_use != kNone) stage.parameter_in_use = in_use;
}

bool SavesPart::saves_after_this_step() const {
  const StepOptions& options = context_.options;
  if (!options.saves) return false;
  const std::int64_t done = context_.training_step() + 1;
  return context_.step + 1 == options.steps || (options.save_every > 0 && done % options.save_every == 0);
}

void SavesPart::after_updates(Graph& graph) {
  if (saves_after_this_step()) save_state(graph, context_.step);
}

void SavesPart::save_last(Graph& graph) {
  const std::int32_t last = context_.step - 1;
  if (context_.options.saves && last >= 0 && saved_step_ != last) save_state(graph, last);
}

void SavesPart::save_state(Graph& graph, std::int32_t step) {
  CHECK(stage_saves_.size() == context_.stage_count() && step > saved_step_, "a step is saved once", step, saved_step_);
  std::int32_t saved = 0;
  for (std::size_t i = 0; i < stage_saves_.size(); ++i)
    if (context_.trains(i)) save_stage(graph, i, step, saved++);
  Op op = context_.loader_op(commit_.label, commit_.work, Phase::Save, 0);
  op.layer = kNone;
  op.step = step;
  for (const StageSave& save : stage_saves_)
    if (save.token != kNone) op.reads.push_back(save.token_value);
  if (context_.scales_loss()) op.reads.push_back(context_.loss_scale);
  op.writes.push_back({graph.new_version(commit_.token), kNone});
  graph.append(std::move(op));
  saved_step_ = step;
}

// The first to be saved begins the checkpoint: its layer is 0.
void SavesPart::save_stage(Graph& graph, std::size_t index, std::int32_t step, std::int32_t place) {
  const StepStage& stage = context_.stages[index];
  StageSave& save = stage_saves_[index];
  Op op = context_.loader_op(save.label, save.work, Phase::Save, index);
  op.layer = place;
  op.step = step;
  if (context_.plan().parameter_leads()) op.reads.push_back(graph.tensor(stage.parameter).latest);
  for (TensorId state : stage.states) op.reads.push_back(graph.tensor(state).latest);
  if (context_.delayed_update) op.reads.push_back(stage.parameter_in_use);
  save.token_value = graph.new_version(save.token);
  op.writes.push_back({save.token_value, kNone});
  graph.append(std::move(op));
}

}  // namespace tandem
