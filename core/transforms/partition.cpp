// Stages of which each of several ranks has a part: ZeRO (Rajbhandari et al., SC 2020), as ZeRO-Offload (ATC 2021,
// section 4.2) and ZeRO-Infinity (SC 2021, section 6.1, bandwidth-centric partitioning) have its stages 2 and 3. A
// rank's parameter, states and final gradient are a range of the bucket, of which the rest of the step is the same as
// of a whole one: it travels over the rank's own link, and is updated where policies say.
//
//   all_gather          reads  the rank's part of the parameter; writes the whole one
//   reduce_scatter      reads  the rank's whole gradient; writes the mean over ranks of its part
//   gradient.accumulate reads  the sum so far, a micro-batch's part; writes the sum
//   all_reduce          reads  a part's gradient; writes its mean over the ranks that have the part, in its place
//   all_reduce_sum      reads  sums of squares of all stages' parts; writes those of the buckets
//
// With `optimizer` (stage 1) gradients are whole until the last micro-batch's is there: reduced once an update, as
// ranks that divide nothing do. With `states` (stage 2) they are after each micro-batch. With both a parameter is
// brought together once an update, before its first use, and stays until its last. With `parameters` (stage 3), or
// under a policy that has whole ones on the device near their use alone, it is for each pass over the layers: before a
// forward, and before what the backward computes again or reads.
//
// Ranks that divide samples have the same states as well, and divide them among them as copies do. Of experts that
// ranks divide, those that have the same ones do; where there is one, it has them whole.
//
// Where fewer ranks divide than there are copies (FSDP's HYBRID_SHARD; MiCS: Zhang et al., VLDB 2022), neighbours do,
// and once an update each part's gradient is reduced among the ranks that have it, one of each such group.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/families/common/checks.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/context.hpp"
#include "core/step/control.hpp"
#include "core/transforms/common/entry.hpp"

namespace tandem {
namespace {

struct PartitionOptions {
  bool gradients = false;         // each rank keeps a part of them alone, while micro-batches add up
  bool parameters = false;        // and of those, too
  std::int64_t device_bytes = 0;  // that the run can place on a device
};

class Partition final : public StepTransform {
 public:
  Partition(StepContext& context, const PartitionOptions& options);
  void rewrite(TrainingPlan& plan) override;
  void begin(Graph& graph) override;
  void add(Graph& graph) override;
  void begin_pass(Phase phase) override;
  void turn_back() override;
  void before_use(Graph& graph, std::size_t index, Phase phase) override;
  void before_backward(Graph& graph, std::size_t index, PassesPart&) override;
  void after_backward(Graph& graph, std::size_t index) override;
  void reduce(Graph& graph, std::size_t index) override;
  void before_control(Graph& graph, ControlPart& control) override;
  void end(Graph& graph) override;

 private:
  struct Works {
    WorkId gather = kNone, scatter = kNone, add = kNone, across = kNone;
  };
  struct Stage {
    TensorId whole_parameter = kNone, whole_gradient = kNone;
    std::int32_t gather_label = kNone, scatter_label = kNone, add_label = kNone, across_label = kNone;
    Works works;
    ValueId gathered_from = kNone;     // the part that was brought together last
    std::int32_t gathered_in = kNone;  // and in which pass
    ValueId gradient_so_far = kNone;   // the sum over micro-batches
  };
  bool gathers_ahead(const TrainingPlan& plan) const;
  bool is_hybrid() const { return context_.options.across_group.size > 1; }
  // Which divide the stage's bucket.
  static const RankGroup& sharing(const StepOptions& options, const StageSpec& stage) {
    return stage.gradients == GradientRanks::Expert ? options.same_experts_group : options.shard_group;
  }
  Op collective(Graph& graph, std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
    return context_.collective(graph, label, work, phase, index, sharing(context_.options, context_.spec(index)));
  }
  void add_stage(Graph& graph, std::size_t index);
  Works add_works_of(Graph& graph, std::size_t index) const;
  bool has_part(std::size_t index) const {
    const StageSpec& stage = context_.spec(index);
    return stage.elements > 0 && context_.share_of(stage).parts > 1;
  }
  bool has_norm_part(std::size_t index, bool of_experts) const {
    const bool are_experts = context_.spec(index).gradients == GradientRanks::Expert;
    return context_.trains(index) && has_part(index) && are_experts == of_experts;
  }
  std::vector<std::int64_t> sizes_among(std::int64_t elements, bool of_experts) const {
    return of_experts ? context_.options.same_experts_sizes(elements) : context_.options.shard_sizes(elements);
  }
  void gather(Graph& graph, std::size_t index, Phase phase);
  void scatter(Graph& graph, std::size_t index);
  void reduce_across(Graph& graph, std::size_t index);

  StepContext& context_;
  const std::int64_t device_bytes_;
  const bool divides_gradients_;
  const bool gathers_each_pass_;  // whole parameters; else they stay from an update to the last backward
  bool gathers_ahead_ = true;
  std::vector<Stage> stages_;
  std::map<std::pair<std::int64_t, std::int64_t>, Works> works_;  // by elements, and parts
  std::array<WorkId, 2> norm_sum_works_{kNone, kNone};            // of experts: the second
  std::int32_t norm_sum_label_ = kNone;
  std::int32_t pass_ = 0;                           // over the stages, or some of them, forward or backward
  std::int32_t forward_pass_ = 0, forward_of_ = 0;  // the latest forward, and its micro-batch
};

Partition::Partition(StepContext& context, const PartitionOptions& options)
    : context_(context),
      device_bytes_(options.device_bytes),
      divides_gradients_(options.gradients),
      gathers_each_pass_(options.parameters || context.streams_parameters),
      stages_(context.stage_count()) {
  require_option(!context.needs_whole_gradients, "partition", "this policy's updates need whole gradients",
                 "allowed: none");
  const auto share_in = [&](const RankGroup& group) {
    return BucketShare{group.size, std::ranges::find(group.members, context.options.own) - group.members.begin()};
  };
  context.share = share_in(context.options.shard_group);
  context.experts_share = share_in(context.options.same_experts_group);
  context.parts_of_gradients = divides_gradients_;  // they are added after each micro-batch
}

// Pads each bucket, so that all ranks' parts are equal and hold whole blocks of every state; and what another stage of
// a pipeline sends of its own.
void Partition::rewrite(TrainingPlan& plan) {
  std::int64_t unit = kFieldAlignment;
  for (const StateSpec& state : plan.states) unit = std::lcm(unit, state.block.elements);
  std::map<const Layout*, std::shared_ptr<const Layout>> padded;  // stages of equal shape share one
  const auto pad = [&](std::int64_t& elements, std::shared_ptr<const Layout>& own, std::int64_t parts) {
    const std::int64_t multiple = parts * unit;
    elements = (elements + multiple - 1) / multiple * multiple;
    if (own == nullptr) return;
    auto& layout = padded[own.get()];
    if (layout == nullptr) {
      Layout longer = *own;
      longer.elements = elements;
      layout = std::make_shared<const Layout>(std::move(longer));
    }
    own = layout;
  };
  for (StageSpec& stage : plan.stages) {
    if (const std::int64_t parts = context_.share_of(stage).parts; parts > 1) pad(stage.elements, stage.layout, parts);
    if (stage.transfer == nullptr || !stage.transfer->of_bucket) continue;
    TransferSpec sent = *stage.transfer;
    pad(sent.elements, sent.layout, context_.share.parts);
    stage.transfer = std::make_shared<const TransferSpec>(std::move(sent));
  }
  gathers_ahead_ = gathers_ahead(plan);
}

// Where two layers' parameters and a gradient would take more than half of the device, computing waits for rings
// rather than for what they displace. So it does under a policy that streams parameters, which asks for as little
// memory as that takes: undivided, it has a layer's and its gradient there.
bool Partition::gathers_ahead(const TrainingPlan& plan) const {
  std::int64_t largest = 0, all = 0;
  for (const StageSpec& stage : plan.stages) {
    largest = std::max(largest, stage.elements * size_of(plan.precision));
    all += stage.elements * size_of(plan.precision);
  }
  // Of few layers two whole ones are more than all, beside parts that updates read, or that come up meanwhile.
  const bool parts_beside = plan.update_reads_parameter() || context_.delayed_update;
  const bool too_few = parts_beside && all / context_.share.parts + 2 * largest > all;
  return !context_.streams_parameters && !too_few && 3 * largest <= device_bytes_ / 2;
}

void Partition::begin(Graph& graph) {
  if (!context_.controls_update()) return;
  norm_sum_label_ = graph.intern("grad_norm.all_reduce");
  for (const bool of_experts : {false, true}) {
    std::int64_t buckets = 0;
    for (std::size_t i = 0; i < stages_.size(); ++i) buckets += has_norm_part(i, of_experts);
    if (buckets == 0) continue;
    norm_sum_works_[of_experts] = graph.add_work({"all_reduce_sum",
                                                  DType::F64,
                                                  sizes_among(buckets, of_experts),
                                                  {memory_kernel(2 * buckets * size_of(DType::F64))}});
  }
}

void Partition::add(Graph& graph) {
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (has_part(i)) add_stage(graph, i);
}

// What is whole is no model state: it is on the device for the ops that read it, and nowhere else unless it is evicted.
void Partition::add_stage(Graph& graph, std::size_t index) {
  const StageSpec& s = context_.spec(index);
  Stage& stage = stages_[index];
  StepStage& bucket = context_.stages[index];
  const DType type = context_.plan().precision;
  const auto add = [&](const char* name, Role reported_as, bool persistent) {
    Tensor tensor = context_.tensor_of(index, name, Role::Activation, type, s.elements * size_of(type));
    tensor.reported_as = reported_as;
    tensor.layout = s.layout;
    tensor.persistent = persistent;
    return graph.add_tensor(std::move(tensor));
  };
  stage.whole_parameter = add("whole_parameter", Role::Parameter, /*persistent=*/!gathers_each_pass_);
  stage.whole_gradient = add("whole_gradient", Role::Gradient, /*persistent=*/false);
  bucket.backward_writes = stage.whole_gradient;
  if (!gathers_each_pass_) graph.set_whole(bucket.parameter, stage.whole_parameter);
  stage.gather_label = graph.intern(s.name + ".all_gather");
  stage.scatter_label = graph.intern(s.name + ".reduce_scatter");
  stage.add_label = graph.intern(s.name + ".accumulate");
  stage.across_label = graph.intern(s.name + ".all_reduce");
  const auto [found, fresh] = works_.try_emplace({s.elements, context_.share_of(s).parts});
  if (fresh) found->second = add_works_of(graph, index);
  stage.works = found->second;
}

Partition::Works Partition::add_works_of(Graph& graph, std::size_t index) const {
  const StageSpec& stage = context_.spec(index);
  const std::int64_t elements = stage.elements, parts = context_.share_of(stage).parts;
  const DType type = context_.plan().precision;
  const std::int64_t bytes = elements * size_of(type), part_bytes = 3 * bytes / parts;
  const std::vector<std::int64_t> sizes = sizes_among(elements, stage.gradients == GradientRanks::Expert);
  Works works;
  works.gather = graph.add_work({"all_gather", type, sizes, {memory_kernel(bytes)}});
  works.scatter = graph.add_work({"reduce_scatter", type, sizes, {memory_kernel(bytes)}});
  works.add =
      graph.add_work({"gradient.accumulate", type, {context_.elements_of_part(index)}, {memory_kernel(part_bytes)}});
  if (is_hybrid())
    works.across = graph.add_work({"all_reduce",
                                   type,
                                   context_.options.across_sizes(context_.elements_of_part(index)),
                                   {memory_kernel(2 * bytes / parts)}});
  return works;
}

void Partition::before_use(Graph& graph, std::size_t index, Phase phase) {
  const StageSpec& s = context_.spec(index);
  for (const PortSpec& port : s.inputs)
    if (port.from == PortSpec::From::Bucket) gather(graph, static_cast<std::size_t>(port.index), phase);
  gather(graph, index, phase);
}

void Partition::gather(Graph& graph, std::size_t index, Phase phase) {
  CHECK(index < stages_.size(), index, stages_.size());
  if (!has_part(index)) return;  // or another stage of a pipeline sent all of it
  Stage& stage = stages_[index];
  StepStage& bucket = context_.stages[index];
  const ValueId own = bucket.parameter_in_use;
  if (stage.gathered_from == own && (!gathers_each_pass_ || stage.gathered_in == pass_)) return;
  stage.gathered_from = own;
  stage.gathered_in = pass_;
  Op op = collective(graph, stage.gather_label, stage.works.gather, phase, index);
  op.reads.push_back(own);
  const ValueId before = gathers_each_pass_ ? kNone : bucket.whole_parameter;  // takes its place
  bucket.whole_parameter = graph.new_version(stage.whole_parameter);
  op.writes.push_back({bucket.whole_parameter, before});
  graph.append(std::move(op));
}

void Partition::begin_pass(Phase phase) {
  ++pass_;
  if (phase == Phase::Forward) forward_pass_ = pass_, forward_of_ = context_.micro_batch;
}

// Where a micro-batch's backward follows its forward at once, the last stage's has the parameters that are there.
void Partition::turn_back() {
  const bool at_once = forward_pass_ == pass_ && forward_of_ == context_.micro_batch;
  ++pass_;
  if (!at_once) return;
  stages_.back().gathered_in = pass_;
  for (const PortSpec& port : context_.plan().stages.back().inputs)
    if (port.from == PortSpec::From::Bucket) stages_[static_cast<std::size_t>(port.index)].gathered_in = pass_;
}

// For the stage below this one, lest its gather wait in the collectives' lane for this one's gradient.
void Partition::before_backward(Graph& graph, std::size_t index, PassesPart&) {
  if (!gathers_ahead_ || index == 0) return;
  const std::size_t below = index - 1;
  if (context_.spec(below).backward_reads_parameter || context_.recomputes[below])
    before_use(graph, below, Phase::Gather);
}

// After each micro-batch, so that of all layers' gradients only parts are kept.
void Partition::after_backward(Graph& graph, std::size_t index) {
  if (!divides_gradients_ || !has_part(index)) return;
  scatter(graph, index);
  StepStage& bucket = context_.stages[index];
  Stage& stage = stages_[index];
  if (context_.micro_batch > 0) {
    Op sum = context_.new_op(stage.add_label, stage.works.add, Phase::Reduce, index);
    sum.reads.push_back(stage.gradient_so_far);
    sum.reads.push_back(bucket.gradient_value);
    bucket.gradient_value = graph.new_version(bucket.gradient);
    sum.writes.push_back({bucket.gradient_value, stage.gradient_so_far});
    graph.append(std::move(sum));
  }
  stage.gradient_so_far = bucket.gradient_value;
}

void Partition::reduce(Graph& graph, std::size_t index) {
  if (!has_part(index)) return;
  if (!divides_gradients_) scatter(graph, index);
  if (is_hybrid()) reduce_across(graph, index);
}

void Partition::scatter(Graph& graph, std::size_t index) {
  StepStage& bucket = context_.stages[index];
  const Stage& stage = stages_[index];
  Op op = collective(graph, stage.scatter_label, stage.works.scatter, Phase::Reduce, index);
  op.reads.push_back(bucket.gradient_value);
  bucket.gradient_value = graph.new_version(bucket.gradient);
  op.writes.push_back({bucket.gradient_value, kNone});
  graph.append(std::move(op));
}

void Partition::reduce_across(Graph& graph, std::size_t index) {
  StepStage& bucket = context_.stages[index];
  const Stage& stage = stages_[index];
  Op op = context_.collective(graph, stage.across_label, stage.works.across, Phase::Reduce, index,
                              context_.options.across_group);
  const ValueId local = bucket.gradient_value;
  op.reads.push_back(local);
  bucket.gradient_value = graph.new_version(bucket.gradient);
  op.writes.push_back({bucket.gradient_value, local});
  graph.append(std::move(op));
}

void Partition::before_control(Graph& graph, ControlPart& control) {
  for (const bool of_experts : {false, true}) {
    if (norm_sum_works_[of_experts] == kNone) continue;
    const RankGroup& group = of_experts ? context_.options.same_experts_group : context_.options.shard_group;
    Op op = context_.collective(graph, norm_sum_label_, norm_sum_works_[of_experts], Phase::Reduce, 0, group);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!has_norm_part(i, of_experts)) continue;
      const ValueId own = control.square_sum_value(i);
      op.reads.push_back(own);
      control.square_sum_value(i) = graph.new_version(control.square_sum(i));
      op.writes.push_back({control.square_sum_value(i), own});
    }
    graph.append(std::move(op));
  }
}

// After the last step's update no all-gather takes the place of what that has made stale.
void Partition::end(Graph& graph) {
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (stages_[i].gathered_from != kNone) graph.retire(context_.stages[i].whole_parameter);
}

class PartitionRewrite final : public Rewrite {
 public:
  explicit PartitionRewrite(const PartitionOptions& options) : options_(options) {}
  std::string_view name() const override { return "partition"; }
  Order order() const override { return Order::Ranks; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<Partition>(context, options_);
  }

 private:
  PartitionOptions options_;
};

void require_shard(const WorkloadOptions& w) {
  const std::int64_t shard = w.parallel.integer_or("shard", w.devices);
  if (w.devices % shard != 0)
    throw ConfigError("parallel.shard: " + std::to_string(shard) + " ranks at a time do not divide " +
                      std::to_string(w.devices) + " copies; allowed: a divisor of parallel.data");
  if (shard != w.devices && w.partition == "none")
    throw ConfigError(
        "parallel.shard: nothing is divided; allowed: none, or workload.partition: optimizer, states or parameters");
}

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const WorkloadOptions& w = scenario.workload;
  require_shard(w);
  if (state_parts(scenario) == 1) return nullptr;
  return std::make_shared<PartitionRewrite>(PartitionOptions{w.partition != "optimizer", w.partition == "parameters",
                                                             tier_capacity_bytes(scenario, Tier::Device)});
}

const std::vector<FamilyKey> kKeys = {optional_key(
    "shard", {2, 4096},
    "Neighbouring ranks, of parallel.data, that divide what workload.partition says; their parts of gradients "
    "are added up across such groups once a step (FSDP's HYBRID_SHARD, MiCS). By default all divide.")};

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM(partition, of_scenario,
                 "Ranks divide optimizer states, gradients too, or parameters too, which are gathered for each pass",
                 "workload.partition: optimizer, states or parameters; parallel.shard", &kKeys)
