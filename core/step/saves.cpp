#include "core/step/saves.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/sizes_of_part.hpp"

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
  add_stage_saves(graph);
  if (together()) add_gathered(graph);
  if (!commits()) return;
  const auto tokens = static_cast<std::int64_t>(together() ? saved_.tokens.size() : context_.stage_count());
  commit_.label = graph.intern("checkpoint.commit");
  commit_.token = add_token(graph, "checkpoint.committed");
  commit_.work = graph.add_work({"checkpoint.commit",
                                 context_.plan().precision,
                                 {context_.delayed_update, context_.scales_loss()},
                                 {memory_kernel(tokens * kTokenBytes)}});
}

void SavesPart::add_stage_saves(Graph& graph) {
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
    std::vector<std::int64_t> sizes = sizes_of_part(context_, s, s.elements);
    if (sizes.size() == 1) sizes.insert(sizes.end(), {1, 0});
    sizes.insert(sizes.end(), {delayed, !begins()});
    save.work = graph.add_work({"checkpoint.save", plan.precision, std::move(sizes), {memory_kernel(bytes)}});
  }
}

void SavesPart::add_gathered(Graph& graph) {
  BucketOwners all = owners();
  for (std::size_t i = 0; !owners().elsewhere() && i < context_.stage_count(); ++i) {
    if (!context_.trains(i)) continue;
    all.members.push_back(0);
    all.names.push_back(context_.spec(i).name);
  }
  begun_ = gathered_of(graph, "checkpoint.begin", {"checkpoint.begun"}, {member(all.members.back(), 0)});
  std::vector<std::string> names;
  std::vector<std::int64_t> members;
  const std::int64_t parts = context_.options.saving_part.ranks;
  for (std::size_t i = 0; i < all.members.size(); ++i)
    for (std::int64_t part = 0; part < parts; ++part) {
      names.push_back(all.names[i] + ".gathered" + (parts > 1 ? std::to_string(part) : ""));
      members.push_back(member(all.members[i], part));
    }
  saved_ = gathered_of(graph, "checkpoint.gather", names, members);
}

SavesPart::Gathered SavesPart::gathered_of(Graph& graph, const std::string& label,
                                           const std::vector<std::string>& names,
                                           const std::vector<std::int64_t>& members) const {
  Gathered gathered;
  gathered.label = graph.intern(label);
  for (const std::string& name : names) gathered.tokens.push_back(add_token(graph, name));
  const std::int64_t bytes = static_cast<std::int64_t>(names.size()) * kTokenBytes;
  const std::int64_t ranks = context_.options.saving_group.size;
  std::vector<std::int64_t> sizes{bytes / size_of(DType::I64), ranks, 0};  // as if on one host
  sizes.insert(sizes.end(), members.begin(), members.end());
  gathered.work = graph.add_work({"checkpoint.gather", DType::I64, std::move(sizes), {memory_kernel(bytes)}});
  return gathered;
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

// The first to be saved begins the checkpoint: its place is 0. Ranks that save together wait for it with theirs.
void SavesPart::save_state(Graph& graph, std::int32_t step) {
  CHECK(stage_saves_.size() == context_.stage_count() && step > saved_step_, "a step is saved once", step, saved_step_);
  if (together() && !begins()) gather(graph, begun_, what_begins_after(graph), step);
  std::int32_t saved = begins() ? 0 : 1;
  std::vector<ValueId> tokens;
  for (std::size_t i = 0; i < stage_saves_.size(); ++i) {
    if (!context_.trains(i)) continue;
    save_stage(graph, i, step, saved++);
    tokens.push_back(stage_saves_[i].token_value);
    if (together() && begins() && tokens.size() == 1) gather(graph, begun_, tokens, step);
  }
  if (together()) {
    gather(graph, saved_, tokens, step);
    tokens = saved_.values;
  }
  if (commits()) commit(graph, tokens, step);
  saved_step_ = step;
}

// Ranks that exchange values meet in one order on one lane: a step's exchanges, then its checkpoint. The last of the
// former is before the first stage's gradient, and so before this.
std::vector<ValueId> SavesPart::what_begins_after(const Graph& graph) const {
  const StepOptions& o = context_.options;
  if (o.tensor_group.size == 1 && o.sequence_group.size == 1 && o.expert_group.size == 1) return {};
  for (std::size_t i = 0; i < context_.stage_count(); ++i)
    if (context_.trains(i)) return {graph.tensor(context_.stages[i].parameter).latest};
  return {};
}

void SavesPart::save_stage(Graph& graph, std::size_t index, std::int32_t step, std::int32_t place) {
  const StepStage& stage = context_.stages[index];
  StageSave& save = stage_saves_[index];
  Op op = context_.loader_op(save.label, save.work, Phase::Save, index);
  op.layer = place;
  op.step = step;
  if (context_.plan().parameter_leads()) op.reads.push_back(graph.tensor(stage.parameter).latest);
  for (TensorId state : stage.states) op.reads.push_back(graph.tensor(state).latest);
  if (context_.delayed_update) op.reads.push_back(stage.parameter_in_use);
  if (!begins()) op.reads.push_back(begun_.values.front());
  save.token_value = graph.new_version(save.token);
  op.writes.push_back({save.token_value, kNone});
  graph.append(std::move(op));
}

// In a group of their own, and not on the lane of gradients: saves come between a step's other commands, here and there
// at another place. Not so beside exchanges, which are on this lane, too: what is saved keeps them apart
// (what_begins_after()).
void SavesPart::gather(Graph& graph, Gathered& gathered, std::vector<ValueId> own, std::int32_t step) {
  constexpr std::int8_t kLane = 1;
  Op op = context_.collective(graph, gathered.label, gathered.work, Phase::Save, 0, context_.options.saving_group);
  op.lane_number = kLane;
  op.step = step;
  op.reads.assign(own.begin(), own.end());
  gathered.values.clear();
  for (const TensorId token : gathered.tokens) {
    gathered.values.push_back(graph.new_version(token));
    op.writes.push_back({gathered.values.back(), kNone});
  }
  graph.append(std::move(op));
}

void SavesPart::commit(Graph& graph, const std::vector<ValueId>& tokens, std::int32_t step) {
  Op op = context_.loader_op(commit_.label, commit_.work, Phase::Save, 0);
  op.layer = kNone;
  op.step = step;
  op.reads.assign(tokens.begin(), tokens.end());
  if (context_.scales_loss()) op.reads.push_back(context_.loss_scale);
  op.writes.push_back({graph.new_version(commit_.token), kNone});
  graph.append(std::move(op));
}

}  // namespace tandem
