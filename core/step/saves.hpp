// Checkpoints: the ops that save the outcome of a training step, and those that a resumed run begins with. Must not
// know files.
//
//   checkpoint.save    reads  the leader (the parameter, or a master copy that it is rounded from), the other states,
//                             under delayed update the parameter in use, [a token that it waits for]; writes a token.
//                             Work::sizes: elements, ranks that divide its layer, this one's place among them,
//                             delayed update, whether it waits
//   checkpoint.gather  reads  tokens that this rank has, [what it waits for]; writes those of all ranks. Work::sizes:
//                             words, ranks, 0, then of each token whose it is
//   checkpoint.commit  reads  the tokens of all stages, [the loss scale]; writes a token of its own. Work::sizes:
//                             delayed update, loss scale
//   checkpoint.load           as the family's own load: writes the parameter, then the states
//   checkpoint.load_in_use    writes the parameter that the first step uses under delayed update
//   checkpoint.load_loss_scale writes fp16's loss scale
#pragma once

#include <vector>

#include "core/step/buckets.hpp"
#include "core/step/context.hpp"

namespace tandem {

class SavesPart {
 public:
  SavesPart(StepContext& context, BucketsPart& buckets) : context_(context), buckets_(buckets) {}
  void add(Graph& graph);
  // A trained stage's outcome of the step that was saved.
  void load(Graph& graph, std::size_t index);
  // After the updates of the step in hand, if it is to be saved.
  void after_updates(Graph& graph);
  // The step before the one in hand, unless it is saved.
  void save_last(Graph& graph);

 private:
  // What saves a stage's state.
  struct StageSave {
    std::int32_t label = kNone;
    WorkId work = kNone;
    TensorId token = kNone;  // what became of it, for the commit
    ValueId token_value = kNone;
  };
  bool saves_after_this_step() const;
  // What ranks that save together hand over to each other.
  struct Gathered {
    std::int32_t label = kNone;
    WorkId work = kNone;
    std::vector<TensorId> tokens;
    std::vector<ValueId> values;
  };
  const BucketOwners& owners() const { return context_.plan().buckets; }
  // Ranks that save together, each what it has: stages of a pipeline, and of each those that divide layers, experts or
  // states. Of them: who makes the folder, and who gives it its name.
  bool together() const { return context_.options.saving_group.size > 1; }
  std::int64_t member(std::int64_t stage, std::int64_t part) const {
    return stage * context_.options.saving_part.ranks + part;
  }
  std::int64_t own_member() const { return member(owners().own, context_.options.saving_part.own); }
  bool begins() const {
    return !together() || own_member() == member(owners().elsewhere() ? owners().members.back() : 0, 0);
  }
  bool commits() const {
    return !together() || own_member() == member(owners().elsewhere() ? owners().group.size - 1 : 0, 0);
  }
  void add_stage_saves(Graph& graph);
  void add_gathered(Graph& graph);
  Gathered gathered_of(Graph& graph, const std::string& label, const std::vector<std::string>& names,
                       const std::vector<std::int64_t>& members) const;
  void save_state(Graph& graph, std::int32_t step);
  std::vector<ValueId> what_begins_after(const Graph& graph) const;
  void save_stage(Graph& graph, std::size_t index, std::int32_t step, std::int32_t place);
  void gather(Graph& graph, Gathered& gathered, std::vector<ValueId> own, std::int32_t step);
  void commit(Graph& graph, const std::vector<ValueId>& tokens, std::int32_t step);

  StepContext& context_;
  BucketsPart& buckets_;
  std::vector<StageSave> stage_saves_;
  StageSave commit_;
  Gathered begun_, saved_;           // of ranks that save together: that the folder is there, and all stages' tokens
  std::int32_t saved_step_ = kNone;  // the last whose outcome is saved
};

}  // namespace tandem
