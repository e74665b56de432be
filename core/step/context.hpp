// What the parts of a step share: the plan, the options, each stage's bucket with the versions of it that are in use,
// and which step and micro-batch is being built. Parts and transforms ask it, never each other. Must not know what they
// add.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/rank_group.hpp"
#include "core/graph/graph.hpp"
#include "core/scenario/saving_group.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/plan.hpp"
#include "core/step/transform.hpp"

namespace tandem {

// What a scenario says of the steps of one rank.
struct StepOptions {
  StepOptions(const Scenario& scenario, Rank of_rank);
  OptimizerOptions optimizer;
  ValidationOptions validation;
  std::int64_t micro_batches, devices;
  Rank own;                                              // of all ranks
  Rank rank;                                             // among those that train on samples of their own
  RankGroup tensor_group, sequence_group, expert_group;  // which divide layers, samples, experts
  RankGroup columns_group, hidden_group;                 // which divide layers one way, and the other
  RankGroup data_group;                                  // which add up their gradients
  RankGroup shard_group;                                 // of those, which divide states
  RankGroup across_group;                                // and which have the same part of them
  RankGroup same_experts_group;                          // those of experts
  bool gpu;
  std::int32_t steps, first_step;  // steps of this run, and those before it
  bool saves;
  RankGroup saving_group;  // of one that saves: which make a checkpoint of what each of them has
  SavingPart saving_part;
  std::int64_t save_every;
  std::int64_t data_on_host, shard_on_host, across_on_host;  // of those groups, the ones on one host; 0: all
  std::int64_t tensor_on_host, same_experts_on_host;
  // Of a work of data_group: elements, ranks, and those on one host where there are others. And of the other three.
  std::vector<std::int64_t> collective_sizes(std::int64_t elements) const;
  std::vector<std::int64_t> shard_sizes(std::int64_t elements) const;
  std::vector<std::int64_t> across_sizes(std::int64_t elements) const;
  std::vector<std::int64_t> same_experts_sizes(std::int64_t elements) const;
  const RankGroup& exchange_group(ExchangeAmong among) const;
  bool clips() const { return optimizer.clip_norm > 0; }
};

// The bucket of a stage, and the versions of it that the step in hand reads.
struct StepStage {
  TensorId parameter = kNone, gradient = kNone;
  TensorId backward_writes = kNone;  // the gradient, unless a transform has backward write another tensor
  std::vector<TensorId> states, carried;
  std::int32_t optimizer_label = kNone;
  WorkId optimizer = kNone;
  std::int64_t optimizer_workspace = 0;
  ValueId parameter_in_use = kNone;  // what forward and backward read; older than the latest under delayed update
  ValueId whole_parameter = kNone;   // they read this instead, where a transform has made it
  ValueId gradient_value = kNone;
};

// Of a bucket that ranks divide: how many parts it has, and which of them is this rank's.
struct BucketShare {
  std::int64_t parts = 1, part = 0;
};

class StepContext {
 public:
  // `plan`: that of the first step, before transforms rewrite it. It must outlive the context.
  StepContext(const TrainingPlan& plan, const Scenario& scenario, Rank rank);
  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

  // Of the sizes that the step in hand has.
  const TrainingPlan& plan() const { return *plan_; }
  void use(const TrainingPlan& plan) { plan_ = &plan; }

  std::size_t stage_count() const { return stages.size(); }
  const StageSpec& spec(std::size_t index) const { return plan_->stages[index]; }
  bool trains(std::size_t index) const { return spec(index).trains(); }
  bool goes_backward(std::size_t index) const { return spec(index).backward != kNone; }
  // Policies place what an update needs by layers.
  std::int32_t layer_of(std::size_t index) const { return layers_[index]; }
  const BucketShare& share_of(const StageSpec& stage) const {
    return stage.gradients == GradientRanks::Expert ? experts_share : share;
  }
  std::int64_t elements_of_part(std::size_t index) const { return spec(index).elements / share_of(spec(index)).parts; }
  // Backward adds to what earlier micro-batches left.
  bool adds_gradients(std::size_t index) const { return !parts_of_gradients || share_of(spec(index)).parts == 1; }
  // What forward and backward read.
  ValueId parameter_of(std::size_t index) const;

  // fp16 has too few exponents for gradients: runtime/optimizer/update_control.hpp.
  bool scales_loss() const { return scales_loss_; }
  // The update waits for the last gradient: its norm, or whether all are finite, decides.
  bool controls_update() const { return options.clips() || scales_loss_; }
  // The number, from 0 over the whole training, of the step in hand.
  std::int64_t training_step() const { return std::int64_t{options.first_step} + step; }

  // Of the stage, and of the step and micro-batch in hand.
  Op new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const;
  // On the CPU, if that is where the stage's passes run: one of them, or what reads its gradient alone.
  void place(Op& op, std::size_t index) const;
  // On the loader's lane.
  Op loader_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const;
  // Among the ranks that add up their gradients; or among others.
  Op collective(Graph& graph, std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
    return collective(graph, label, work, phase, index, options.data_group);
  }
  Op collective(Graph& graph, std::int32_t label, WorkId work, Phase phase, std::size_t index,
                const RankGroup& group) const;
  // Of a stage that is one: makes of an op one of the ranks that exchange its value.
  void exchange(Graph& graph, Op& op, std::size_t index) const {
    exchange(graph, op, options.exchange_group(spec(index).among));
  }
  void exchange(Graph& graph, Op& op, const RankGroup& group) const;
  // Of a stage that is one: makes of an op one that sends or receives.
  void transfer(Graph& graph, Op& op, std::size_t index, bool backward) const;
  // "block3.NAME" of a stage; of its bucket, or of this rank's part of it.
  Tensor tensor_of(std::size_t index, std::string_view name, Role role, DType type, std::int64_t bytes) const;
  Tensor bucket_tensor(std::size_t index, std::string_view name, Role role, DType type, std::int64_t bytes) const;

  const StepOptions options;
  std::vector<StepStage> stages;
  std::int32_t step = 0, micro_batch = 0;
  ValueId loss_scale = kNone, control = kNone;  // in hand: none where losses are not scaled, steps not controlled

  // What transforms decide before anything is built.
  BucketShare share, experts_share;
  bool parts_of_gradients = false;  // of buckets in parts, a rank keeps its part of each micro-batch's gradient
  bool delayed_update = false;      // forward and backward of step s read the parameters from before s-1's update
  // The micro-batch in hand: all of it runs on the CPU; and its gradients begin a sum, as those of the first one do.
  bool on_cpu = false;
  std::optional<bool> begins_a_sum;
  bool begins_sum() const { return begins_a_sum.value_or(micro_batch == 0); }
  bool inputs_on_device = false;       // what makes numbers of decoded items: unless the policy says otherwise
  bool streams_parameters = false;     // they are on the device near their use alone
  bool needs_whole_gradients = false;  // an update does
  DType gradient_type;                 // of final gradients
  std::vector<bool> recomputes;        // by stage: what it saves is made again before its backward

  // The stages whose gradients became final as the last one came in: its own, unless a transform gathers several.
  std::vector<std::size_t> final_gradients;

  std::vector<std::unique_ptr<StepTransform>> transforms;

 private:
  const TrainingPlan* plan_;
  std::vector<std::int32_t> layers_;
  bool scales_loss_;
};

// What an op updates in place: it reads the latest version, and writes one that takes its storage over.
void update_in_place(Graph& graph, Op& op, TensorId tensor);

// A tensor of no stage.
TensorId add_plain_tensor(Graph& graph, const std::string& name, Role role, DType type, std::int64_t bytes,
                          bool persistent = false);

}  // namespace tandem
