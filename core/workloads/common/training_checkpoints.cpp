// TrainingSource's checkpoints: ops that save the outcome of a training step, and those that a resumed run begins with.
//
//   checkpoint.save    reads  the leader (the parameter, or a master copy that it is rounded from), the other states,
//                             under delayed update the parameter in use; writes a token. Work::sizes: elements, delayed
//                             update
//   checkpoint.commit  reads  the tokens of all stages, [the loss scale]; writes a token of its own. Work::sizes:
//                             delayed update, loss scale
//   checkpoint.load           as the family's own load: writes the parameter, then the states
//   checkpoint.load_in_use    writes the parameter that the first step uses under delayed update
//   checkpoint.load_loss_scale writes fp16's loss scale
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/training_source.hpp"

namespace tandem {
namespace {

// Bytes and checksum of what was written: SaveToken of runtime/checkpoint.
constexpr std::int64_t kTokenBytes = 24;

TensorId add_token(Graph& graph, const std::string& name) {
  Tensor token;
  token.name = name;
  token.role = Role::Scalar;
  token.type = DType::I64;
  token.bytes = kTokenBytes;
  return graph.add_tensor(std::move(token));
}

}  // namespace

void TrainingSource::add_saves(Graph& graph) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    stage_saves_.emplace_back();
    if (!trains(i)) continue;  // what is frozen begins as it began
    const Stage& stage = stages_[i];
    std::int64_t bytes = plan_.parameter_leads() ? graph.tensor(stage.parameter).bytes : 0;
    for (TensorId state : stage.states) bytes += graph.tensor(state).bytes;
    if (delayed_update_) bytes += graph.tensor(stage.parameter).bytes;
    StageSave& save = stage_saves_.back();
    save.label = graph.intern(spec(i).name + ".save");
    save.token = add_token(graph, spec(i).name + ".saved");
    save.work = graph.add_work(
        {"checkpoint.save", plan_.precision, {spec(i).elements, delayed_update_}, {memory_kernel(bytes)}});
  }
  const auto tokens = static_cast<std::int64_t>(stages_.size());
  commit_.label = graph.intern("checkpoint.commit");
  commit_.token = add_token(graph, "checkpoint.committed");
  commit_.work = graph.add_work(
      {"checkpoint.commit", plan_.precision, {delayed_update_, scales_loss_}, {memory_kernel(tokens * kTokenBytes)}});
}

// Under delayed update the first step uses the parameters from before the last update, and the second the latest: two
// versions, in the order in which the run that saved them made them.
void TrainingSource::load_checkpoint(Graph& graph, std::size_t index) {
  Stage& stage = stages_[index];
  ValueId in_use = kNone;
  if (delayed_update_) {
    const WorkId work = graph.add_work({"checkpoint.load_in_use",
                                        plan_.precision,
                                        {spec(index).elements},
                                        {memory_kernel(graph.tensor(stage.parameter).bytes)}});
    Op op = new_op(graph.intern(spec(index).name + ".load_in_use"), work, Phase::Load, index);
    op.engine = Engine::Loader;
    op.engines = engine_bit(Engine::Loader);
    op.step = kNone;
    in_use = graph.new_version(stage.parameter);
    op.writes.push_back({in_use, kNone});
    graph.append(std::move(op));
  }
  graph.append(load_op(graph, index, "checkpoint.load", stage.states));
  if (in_use != kNone) stage.parameter_in_use = in_use;
}

bool TrainingSource::saves_after_this_step() const {
  if (!saves_) return false;
  const std::int64_t done = std::int64_t{first_step_} + step_ + 1;
  return step_ + 1 == steps_ || (save_every_ > 0 && done % save_every_ == 0);
}

void TrainingSource::append_save(Graph& graph) {
  if (saves_ && step_ > 0 && saved_step_ != step_ - 1) save_state(graph, step_ - 1);
}

void TrainingSource::save_state(Graph& graph, std::int32_t step) {
  CHECK(stage_saves_.size() == stages_.size() && step > saved_step_, "a step is saved once", step, saved_step_);
  std::int32_t saved = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (trains(i)) save_stage(graph, i, step, saved++);
  Op op = new_op(commit_.label, commit_.work, Phase::Save, 0);
  op.layer = kNone;
  op.step = step;
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  for (const StageSave& save : stage_saves_)
    if (save.token != kNone) op.reads.push_back(save.token_value);
  if (scales_loss_) op.reads.push_back(latest_loss_scale_);
  op.writes.push_back({graph.new_version(commit_.token), kNone});
  graph.append(std::move(op));
  saved_step_ = step;
}

// The first to be saved begins the checkpoint: its layer is 0.
void TrainingSource::save_stage(Graph& graph, std::size_t index, std::int32_t step, std::int32_t place) {
  const Stage& stage = stages_[index];
  StageSave& save = stage_saves_[index];
  Op op = new_op(save.label, save.work, Phase::Save, index);
  op.layer = place;
  op.step = step;
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  if (plan_.parameter_leads()) op.reads.push_back(graph.tensor(stage.parameter).latest);
  for (TensorId state : stage.states) op.reads.push_back(graph.tensor(state).latest);
  if (delayed_update_) op.reads.push_back(stage.parameter_in_use);
  save.token_value = graph.new_version(save.token);
  op.writes.push_back({save.token_value, kNone});
  graph.append(std::move(op));
}

}  // namespace tandem
