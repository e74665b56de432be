// TrainingSource's stages where each of several ranks has a part of them: ZeRO (Rajbhandari et al., SC 2020), stages 2
// and 3, as ZeRO-Offload (ATC 2021, section 4.2) and ZeRO-Infinity (SC 2021, section 6.1, bandwidth-centric
// partitioning) have it. A rank's parameter, states and final gradient are a range of the bucket, of which the rest of
// the step is the same as of a whole one: it travels over the rank's own link, and is updated where policies say.
//
//   all_gather          reads  the rank's part of the parameter; writes the whole one
//   reduce_scatter      reads  the rank's whole gradient; writes the mean over ranks of its part
//   gradient.accumulate reads  the sum so far, a micro-batch's part; writes the sum
//   all_reduce_sum      reads  sums of squares of all stages' parts; writes those of the buckets
//
// With `states` a parameter is brought together once an update, before its first use, and stays until its last. With
// `parameters`, or under a policy that has whole ones on the device near their use alone, it is for each pass over the
// layers: before a forward, and before what the backward computes again or reads.
#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/capacity.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"

namespace tandem {

// Pads each bucket, so that all ranks' parts are equal and hold whole blocks of every state.
void TrainingSource::divide_stages(const Scenario& scenario) {
  require_option(!subspace_ && !one_bit_, "partition", "this policy's updates need whole gradients", "allowed: none");
  require_option(!saves_ && first_step_ == 0, "partition", "a checkpoint holds whole states, which no rank has",
                 "allowed: none, or no checkpoint.directory and no --resume");
  std::int64_t unit = kFieldAlignment;
  for (const StateSpec& state : plan_.states) unit = std::lcm(unit, state.block.elements);
  std::map<const Layout*, std::shared_ptr<const Layout>> padded;  // stages of equal shape share one
  for (StageSpec& stage : plan_.stages) {
    stage.elements = (stage.elements + parts_ * unit - 1) / (parts_ * unit) * (parts_ * unit);
    if (stage.layout == nullptr) continue;
    auto& layout = padded[stage.layout.get()];
    if (layout == nullptr) {
      Layout longer = *stage.layout;
      longer.elements = stage.elements;
      layout = std::make_shared<const Layout>(std::move(longer));
    }
    stage.layout = layout;
  }
  // Where two layers' parameters and a gradient would take more than half of the device, computing waits for rings
  // rather than for what they displace. So it does under a policy that streams parameters, which asks for as little
  // memory as that takes: undivided, it has a layer's and its gradient there.
  std::int64_t largest = 0, all = 0;
  for (const StageSpec& stage : plan_.stages) {
    largest = std::max(largest, stage.elements * size_of(plan_.precision));
    all += stage.elements * size_of(plan_.precision);
  }
  // Of few layers two whole ones are more than all, beside parts that updates read, or that come up meanwhile.
  const bool parts_beside = plan_.update_reads_parameter() || delayed_update_;
  const bool too_few = parts_beside && all / parts_ + 2 * largest > all;
  gathers_ahead_ = !streams_parameters_ && !too_few && 3 * largest <= tier_capacity_bytes(scenario, Tier::Device) / 2;
}

// What is whole is no model state: it is on the device for the ops that read it, and nowhere else unless it is evicted.
void TrainingSource::add_partition(Graph& graph, std::size_t index) {
  const StageSpec& s = spec(index);
  Partition& part = partitions_[index];
  const std::int64_t bytes = s.elements * size_of(plan_.precision);
  const auto add = [&](const char* name, Role reported_as, bool persistent) {
    Tensor tensor;
    tensor.name = s.name + name;
    tensor.role = Role::Activation;
    tensor.reported_as = reported_as;
    tensor.type = plan_.precision;
    tensor.bytes = bytes;
    tensor.layer = layers_[index];
    tensor.layout = s.layout;
    tensor.persistent = persistent;
    return graph.add_tensor(std::move(tensor));
  };
  part.whole_parameter = add(".whole_parameter", Role::Parameter, /*persistent=*/!gathers_each_pass_);
  part.whole_gradient = add(".whole_gradient", Role::Gradient, /*persistent=*/false);
  if (!gathers_each_pass_) graph.set_whole(stages_[index].parameter, part.whole_parameter);
  part.gather_label = graph.intern(s.name + ".all_gather");
  part.scatter_label = graph.intern(s.name + ".reduce_scatter");
  part.add_label = graph.intern(s.name + ".accumulate");
  for (std::size_t i = 0; i < index; ++i) {
    if (spec(i).elements != s.elements) continue;
    const Partition& same = partitions_[i];
    part.gather = same.gather;
    part.scatter = same.scatter;
    part.add = same.add;
    return;
  }
  const std::vector<std::int64_t> sizes{s.elements, devices_};
  part.gather = graph.add_work({"all_gather", plan_.precision, sizes, {memory_kernel(bytes)}});
  part.scatter = graph.add_work({"reduce_scatter", plan_.precision, sizes, {memory_kernel(bytes)}});
  part.add = graph.add_work(
      {"gradient.accumulate", plan_.precision, {s.elements / parts_}, {memory_kernel(3 * bytes / parts_)}});
}

Op TrainingSource::collective(std::int32_t label, WorkId work, Phase phase, std::size_t index) {
  CHECK(devices_ > 1, "a collective of one rank", spec(index).name, devices_);
  Op op = new_op(label, work, phase, index);
  op.engine = Engine::Collective;
  op.engines = engine_bit(Engine::Collective);
  op.match_group = 0;
  op.match_sequence = collectives_++;
  return op;
}

// What forward and backward read.
ValueId TrainingSource::parameter_of(std::size_t index) const {
  return divides() ? partitions_[index].whole_value : stages_[index].parameter_in_use;
}

void TrainingSource::gather_for(Graph& graph, std::size_t index, Phase phase) {
  if (!divides()) return;
  for (const PortSpec& port : spec(index).inputs)
    if (port.from == PortSpec::From::Bucket) gather(graph, static_cast<std::size_t>(port.index), phase);
  if (spec(index).elements > 0) gather(graph, index, phase);
}

void TrainingSource::gather(Graph& graph, std::size_t index, Phase phase) {
  CHECK(index < partitions_.size(), index, partitions_.size());
  Partition& part = partitions_[index];
  const ValueId own = stages_[index].parameter_in_use;
  if (part.gathered_from == own && (!gathers_each_pass_ || part.gathered_in == pass_)) return;
  part.gathered_from = own;
  part.gathered_in = pass_;
  Op op = collective(part.gather_label, part.gather, phase, index);
  op.reads.push_back(own);
  const ValueId before = gathers_each_pass_ ? kNone : part.whole_value;  // takes its place
  part.whole_value = graph.new_version(part.whole_parameter);
  op.writes.push_back({part.whole_value, before});
  graph.append(std::move(op));
}

// The last stage's backward follows its forward at once, with the parameters that are there.
void TrainingSource::turn_back() {
  begin_pass();
  if (!divides()) return;
  partitions_.back().gathered_in = pass_;
  for (const PortSpec& port : plan_.stages.back().inputs)
    if (port.from == PortSpec::From::Bucket) partitions_[static_cast<std::size_t>(port.index)].gathered_in = pass_;
}

// Before the backward of the stage above, lest it wait in the collectives' lane for that one's gradient.
void TrainingSource::gather_ahead(Graph& graph, std::size_t index) {
  if (!gathers_ahead_) return;
  if (spec(index).backward_reads_parameter || recomputes(index)) gather_for(graph, index, Phase::Gather);
}

// After each micro-batch, so that of all layers' gradients only parts are kept.
void TrainingSource::reduce_scatter(Graph& graph, std::size_t index) {
  Stage& stage = stages_[index];
  const Partition& part = partitions_[index];
  const ValueId so_far = stage.gradient_value;
  Op op = collective(part.scatter_label, part.scatter, Phase::Reduce, index);
  op.reads.push_back(graph.tensor(part.whole_gradient).latest);
  stage.gradient_value = graph.new_version(stage.gradient);
  op.writes.push_back({stage.gradient_value, kNone});
  graph.append(std::move(op));
  if (micro_batch_ == 0) return;
  Op sum = new_op(part.add_label, part.add, Phase::Reduce, index);
  sum.reads.push_back(so_far);
  sum.reads.push_back(stage.gradient_value);
  stage.gradient_value = graph.new_version(stage.gradient);
  sum.writes.push_back({stage.gradient_value, so_far});
  graph.append(std::move(sum));
}

// After the last step's update no all-gather takes the place of what that has made stale.
void TrainingSource::retire_whole_parameters(Graph& graph) const {
  for (const Partition& part : partitions_)
    if (part.whole_value != kNone) graph.retire(part.whole_value);
}

void TrainingSource::sum_squares_of_ranks(Graph& graph) {
  Op op = collective(norm_sum_label_, norm_sum_work_, Phase::Reduce, 0);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (!trains(i)) continue;
    Stage& stage = stages_[i];
    const ValueId own = stage.square_sum_value;
    op.reads.push_back(own);
    stage.square_sum_value = graph.new_version(stage.square_sum);
    op.writes.push_back({stage.square_sum_value, own});
  }
  graph.append(std::move(op));
}

}  // namespace tandem
