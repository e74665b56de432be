// Turns a plan into training steps: loads, forward and backward by micro-batch, reduction, clipping, optimizer, and
// evaluation on held-out data where it is due.
// Must not know what the network computes, nor policies or machines.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/graph/request.hpp"
#include "core/scenario/scenario.hpp"
#include "core/workloads/common/plan.hpp"
#include "core/workloads/common/recomputation.hpp"

namespace tandem {

class TrainingSource final : public StepSource {
 public:
  TrainingSource(TrainingPlan plan, const Scenario& scenario, const GraphRequest& request);
  void prologue(Graph& graph) override;
  bool append_step(Graph& graph, std::int64_t result) override;
  bool saves() const override { return saves_; }
  void append_save(Graph& graph) override;

 private:
  struct StageLabels {
    std::int32_t forward, recompute, backward, all_reduce, grad_norm, widen, optimizer, evaluate;
  };
  // What a stage has beside that where each rank has a part of it.
  struct Partition {
    TensorId whole_parameter = kNone, whole_gradient = kNone;
    std::int32_t gather_label = kNone, scatter_label = kNone, add_label = kNone;
    WorkId gather = kNone, scatter = kNone, add = kNone;
    ValueId whole_value = kNone, gathered_from = kNone;  // the last that was brought together, and its part
    std::int32_t gathered_in = kNone;                    // and in which pass
  };
  // The tensors of a stage, and the versions that the step in hand reads.
  struct Stage {
    TensorId parameter = kNone, gradient = kNone, wide_gradient = kNone, contribution = kNone, square_sum = kNone;
    std::vector<TensorId> states, saved, outputs, output_gradients;
    StageLabels labels{};
    WorkId optimizer = kNone, all_reduce = kNone, grad_norm = kNone, widen = kNone;
    std::int64_t optimizer_workspace = 0, norm_workspace = 0;
    ValueId parameter_in_use = kNone;  // what forward and backward read; older than the latest under delayed update
    ValueId gradient_value = kNone, contribution_value = kNone, square_sum_value = kNone;
    std::vector<ValueId> saved_values, output_values, output_gradient_values;
  };

  // What a stage has beside that where it is updated in a subspace.
  struct Subspace {
    std::shared_ptr<const Layout> layout;                             // none where sizes are all that is known
    TensorId places = kNone, values = kNone;                          // of the projectors' non-zeros; or none
    TensorId m = kNone, v = kNone, gradient = kNone, change = kNone;  // in the subspace
    std::int32_t load_label = kNone, compress_label = kNone, fit_label = kNone, apply_label = kNone;
    WorkId load = kNone, compress = kNone, fit = kNone, apply = kNone;
    std::int64_t compress_workspace = 0, fit_workspace = 0, apply_workspace = 0;
    bool projects() const { return places != kNone; }
  };

  // What a stage has beside that where its momentum travels as signs.
  struct OneBit {
    TensorId signs = kNone, m = kNone, v = kNone;
    std::int32_t label = kNone;
    WorkId begin = kNone, compress = kNone, update = kNone;
  };

  // What saves a stage's state.
  struct StageSave {
    std::int32_t label = kNone;
    WorkId work = kNone;
    TensorId token = kNone;  // what became of it, for the commit
    ValueId token_value = kNone;
  };

  void add_works(Graph& graph);
  void add_stage(Graph& graph, std::size_t index);
  void add_bucket_works(Graph& graph, const StageSpec& s, Stage& stage);
  void add_control(Graph& graph);
  Op load_op(Graph& graph, std::size_t index, const std::string& body, std::span<const TensorId> states);
  Op loss_scale_op(Graph& graph);
  void add_batch_works(Graph& graph);
  void load_batch(Graph& graph, std::int32_t label, WorkId work);
  void forward(Graph& graph, std::size_t index);
  void append_forward(Graph& graph, std::size_t index, Op op, bool writes_output, bool saves);
  void evaluate(Graph& graph);
  void recompute(Graph& graph, std::size_t first, std::size_t last);
  void backward(Graph& graph, std::size_t index);
  ValueId value_of(const PortSpec& port) const;
  void read_forward_operands(std::size_t index, Op& op) const;
  void read_backward_operands(std::size_t index, Op& op) const;
  void write_gradients(Graph& graph, std::size_t index, PortSpec::From from, Op& op);
  ValueId& gradient_of(const PortSpec& port);
  void reduce(Graph& graph, std::size_t index);
  void sum_squares(Graph& graph, Stage& stage, std::size_t index);
  void widen(Graph& graph, Stage& stage, std::size_t index);
  void control_update(Graph& graph);
  void update(Graph& graph, std::size_t index);
  void optimize(Graph& graph, std::size_t index);
  // Updates in a subspace (training_subspace.cpp).
  void add_subspace(Graph& graph, std::size_t index);
  void add_subspace_works(Graph& graph, std::size_t index);
  void load_subspace(Graph& graph, std::size_t index);
  void fit(Graph& graph, std::size_t index);
  void compress(Graph& graph, std::size_t index);
  void optimize_in_subspace(Graph& graph, std::size_t index);
  void read_projectors(const Graph& graph, std::size_t index, Op& op) const;
  // Momentum that travels as signs (training_one_bit.cpp).
  bool sends_signs() const { return one_bit_ && first_step_ + step_ >= one_bit_->warmup_steps; }
  void add_one_bit(Graph& graph, std::size_t index);
  void add_one_bit_works(Graph& graph, std::size_t index);
  void compress_momentum(Graph& graph, std::size_t index);
  void optimize_by_signs(Graph& graph, std::size_t index);
  // States, or parameters too, of which each rank has a part (training_partition.cpp).
  bool divides() const { return parts_ > 1; }
  void divide_stages(const Scenario& scenario);
  void add_partition(Graph& graph, std::size_t index);
  Op collective(std::int32_t label, WorkId work, Phase phase, std::size_t index);
  void begin_pass() { ++pass_; }
  void turn_back();
  void gather_ahead(Graph& graph, std::size_t index);
  void gather(Graph& graph, std::size_t index, Phase phase);
  void gather_for(Graph& graph, std::size_t index, Phase phase);
  void reduce_scatter(Graph& graph, std::size_t index);
  void sum_squares_of_ranks(Graph& graph);
  void retire_whole_parameters(Graph& graph) const;
  ValueId parameter_of(std::size_t index) const;
  // Checkpoints (training_checkpoints.cpp).
  void add_saves(Graph& graph);
  void load_checkpoint(Graph& graph, std::size_t index);
  bool saves_after_this_step() const;
  void save_state(Graph& graph, std::int32_t step);
  void save_stage(Graph& graph, std::size_t index, std::int32_t step, std::int32_t place);
  std::int64_t optimizer_workspace(const Layout& layout) const;
  std::int64_t norm_workspace(std::size_t index) const;
  Op new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const;
  Op planned_op(std::int32_t label, OpSpecIndex op_spec, Phase phase, std::size_t index) const;
  const StageSpec& spec(std::size_t index) const { return plan_.stages[index]; }
  bool clips() const { return clip_norm_ > 0; }
  // The update waits for the last gradient: its norm, or whether all are finite, decides.
  bool controls_update() const { return clips() || scales_loss_; }
  // A rank's own gradients are added up, where it keeps them whole.
  bool accumulates() const { return micro_batch_ > 0 && !divides(); }
  bool trains(std::size_t index) const { return spec(index).trains(); }
  bool goes_backward(std::size_t index) const { return spec(index).backward != kNone; }
  bool recomputes(std::size_t index) const { return recomputation_.recomputes[index]; }

  TrainingPlan plan_;
  std::vector<std::int32_t> layers_;  // by stage
  std::string optimizer_name_;
  double clip_norm_;
  std::int64_t micro_batches_, devices_;
  std::int64_t parts_;       // of each stage's gradient and states, by rank
  bool streams_parameters_;  // the policy does
  bool gathers_each_pass_;   // whole parameters; else they stay from an update to the last backward
  bool gathers_ahead_ = true;
  Rank rank_;
  bool gpu_;
  std::int32_t steps_, first_step_;  // steps of this run, and those before it
  Recomputation recomputation_;
  bool delayed_update_, widens_gradients_;
  std::optional<SubspaceUpdate> subspace_;
  std::optional<OneBitUpdate> one_bit_;
  bool scales_loss_;  // fp16 has too few exponents for gradients; see runtime/optimizer/update_control.hpp
  ValidationOptions validation_;
  bool saves_;
  std::int64_t save_every_;

  std::vector<WorkId> works_;  // by OpSpecIndex
  std::vector<Stage> stages_;
  std::vector<Subspace> subspaces_;    // by stage; empty: there are none
  std::vector<OneBit> one_bits_;       // likewise
  std::vector<Partition> partitions_;  // likewise
  std::vector<StageSave> stage_saves_;
  StageSave commit_;
  std::int32_t saved_step_ = kNone;                    // the last whose outcome is saved
  std::map<std::int64_t, std::size_t> stage_of_size_;  // by elements: the first stage, whose works the others share
  WorkId batch_work_ = kNone, held_out_work_ = kNone, control_work_ = kNone, norm_sum_work_ = kNone;
  std::vector<TensorId> batch_;
  TensorId control_ = kNone, loss_scale_ = kNone;
  std::int32_t batch_label_ = kNone, held_out_label_ = kNone, control_label_ = kNone, norm_sum_label_ = kNone;
  std::int32_t step_ = 0, micro_batch_ = 0;
  std::int32_t collectives_ = 0;
  std::int32_t pass_ = 0;  // over the stages, forward or backward
  std::vector<ValueId> batch_values_;
  ValueId control_value_ = kNone, latest_loss_scale_ = kNone;
};

}  // namespace tandem
