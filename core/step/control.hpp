// What decides how, and whether, a step's updates are made where it is clipped or its loss is scaled: each gradient's
// sum of squares, and one op that reads them all. Must not know updates.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/step/context.hpp"

namespace tandem {

class ControlPart {
 public:
  explicit ControlPart(StepContext& context) : context_(context), stages_(context.stage_count()) {}
  void add(Graph& graph);
  void add_stage(Graph& graph, std::size_t index);
  void add_works(Graph& graph, std::size_t index);
  void load_scale(Graph& graph);
  void sum_squares(Graph& graph, std::size_t index);
  // Of a trained stage: the sum that sum_up reads, of which an op may make another version.
  TensorId square_sum(std::size_t index) const { return stages_[index].square_sum; }
  ValueId& square_sum_value(std::size_t index) { return stages_[index].value; }
  // Writes the update's control, and the loss scale of the next step.
  void sum_up(Graph& graph);

 private:
  struct Stage {
    TensorId square_sum = kNone;
    ValueId value = kNone;
    std::int32_t label = kNone;
    WorkId work = kNone;
    std::int64_t workspace = 0;
  };
  std::int64_t norm_workspace(std::size_t index) const;
  bool divides_layers() const { return context_.options.tensor_group.size > 1; }
  bool is_added_up(std::size_t index, const RankGroup& group) const;
  void add_up_parts(Graph& graph);
  std::vector<ValueId> own_sums() const;
  std::vector<ValueId> all_sums(Graph& graph);

  StepContext& context_;
  std::vector<Stage> stages_;
  std::map<std::tuple<std::int64_t, std::int64_t, GradientRanks>, WorkId> works_;  // by elements, parts, and whose
  WorkId work_ = kNone;
  std::int32_t label_ = kNone;
  std::vector<TensorId> gathered_;  // sums of all ranks' buckets, where they have some each
  WorkId gather_work_ = kNone;
  std::vector<std::pair<const RankGroup*, WorkId>> exchanges_;  // of sums, among ranks that have parts
  TensorId control_ = kNone, loss_scale_ = kNone;
};

}  // namespace tandem
