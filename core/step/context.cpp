#include "core/step/context.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/scenario/layer_ranks.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/exchange_ranks.hpp"

namespace tandem {

StepOptions::StepOptions(const Scenario& scenario, Rank of_rank)
    : optimizer(scenario.optimizer),
      validation(scenario.validation),
      micro_batches(scenario.workload.micro_batches),
      devices(scenario.workload.devices),
      own(of_rank),
      rank(place_of(scenario, of_rank).data),
      tensor_group(tandem::tensor_group(scenario, of_rank)),
      sequence_group(tandem::sequence_group(scenario, of_rank)),
      expert_group(tandem::expert_group(scenario, of_rank)),
      columns_group(tandem::columns_group(scenario, of_rank)),
      hidden_group(tandem::hidden_group(scenario, of_rank)),
      data_group(tandem::data_group(scenario, of_rank)),
      shard_group(tandem::shard_group(scenario, of_rank)),
      across_group(tandem::across_group(scenario, of_rank)),
      same_experts_group(tandem::same_experts_group(scenario, of_rank)),
      gpu(scenario.machine.gpu),
      steps(scenario.steps - scenario.first_step),
      first_step(scenario.first_step),
      saves(!scenario.checkpoint.directory.empty() && saves_states(scenario, of_rank)),
      saving_group(saves ? tandem::saving_group(scenario) : RankGroup{}),
      saving_part(tandem::saving_part(scenario, of_rank)),
      save_every(scenario.checkpoint.every),
      data_on_host(data_members_on_a_host(scenario)),
      shard_on_host(shard_members_on_a_host(scenario)),
      across_on_host(across_members_on_a_host(scenario)),
      tensor_on_host(exchange_members_on_a_host(scenario, ExchangeAmong::Tensor)),
      same_experts_on_host(tandem::same_experts_on_a_host(scenario)) {}

const RankGroup& StepOptions::exchange_group(ExchangeAmong among) const {
  if (among == ExchangeAmong::Sequence) return sequence_group;
  if (among == ExchangeAmong::Hidden) return hidden_group;
  return among == ExchangeAmong::Expert ? expert_group : columns_group;
}

namespace {

std::vector<std::int64_t> sizes_of(std::int64_t elements, const RankGroup& group, std::int64_t on_host) {
  std::vector<std::int64_t> sizes{elements, group.size};
  if (on_host > 0) sizes.push_back(on_host);
  return sizes;
}

// Policies place what an update needs by layers: each is a stage that is updated, with those after it that are not,
// such as frozen ones; what comes before the first belongs to it. Where nothing goes backward, each stage is a layer.
std::vector<std::int32_t> layers_of(const TrainingPlan& plan) {
  std::vector<std::int32_t> layers;
  std::int32_t updated = 0;
  const bool trains = std::any_of(plan.stages.begin(), plan.stages.end(),
                                  [](const StageSpec& stage) { return stage.backward != kNone; });
  for (const StageSpec& stage : plan.stages) {
    const bool is_layer = stage.trains() || (!trains && stage.held_for == kNone);
    updated += is_layer;
    layers.push_back(std::max(updated - 1, 0));
  }
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (const std::int32_t owner = plan.stages[i].held_for; owner != kNone)
      layers[i] = layers[static_cast<std::size_t>(owner)];
  return layers;
}

}  // namespace

std::vector<std::int64_t> StepOptions::collective_sizes(std::int64_t elements) const {
  return sizes_of(elements, data_group, data_on_host);
}
std::vector<std::int64_t> StepOptions::shard_sizes(std::int64_t elements) const {
  return sizes_of(elements, shard_group, shard_on_host);
}
std::vector<std::int64_t> StepOptions::across_sizes(std::int64_t elements) const {
  return sizes_of(elements, across_group, across_on_host);
}

std::vector<std::int64_t> StepOptions::same_experts_sizes(std::int64_t elements) const {
  return sizes_of(elements, same_experts_group, same_experts_on_host);
}

StepContext::StepContext(const TrainingPlan& plan, const Scenario& scenario, Rank rank)
    : options(scenario, rank),
      stages(plan.stages.size()),
      gradient_type(plan.precision),
      recomputes(plan.stages.size(), false),
      plan_(&plan),
      layers_(layers_of(plan)),
      scales_loss_(plan.precision == DType::F16 && scenario.optimizer.loss_scaling &&
                   (!plan.batch.load.body.empty() || plan.buckets.elsewhere())) {
  CHECK(!stages.empty() && options.micro_batches >= 1, plan.family, options.micro_batches);
}

ValueId StepContext::parameter_of(std::size_t index) const {
  const StepStage& stage = stages[index];
  return stage.whole_parameter != kNone ? stage.whole_parameter : stage.parameter_in_use;
}

Op StepContext::new_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  Op op;
  op.label = label;
  op.work = work;
  op.phase = phase;
  op.engine = Engine::Compute;
  op.engines = engine_bit(Engine::Compute);
  op.step = step;
  op.micro_batch = micro_batch;
  op.layer = layers_[index];
  return op;
}

void StepContext::place(Op& op, std::size_t index) const {
  if (!spec(index).on_cpu && !on_cpu) return;
  op.engine = Engine::CpuCompute;
  op.engines = engine_bit(Engine::CpuCompute);
}

Op StepContext::loader_op(std::int32_t label, WorkId work, Phase phase, std::size_t index) const {
  Op op = new_op(label, work, phase, index);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  return op;
}

Op StepContext::collective(Graph& graph, std::int32_t label, WorkId work, Phase phase, std::size_t index,
                           const RankGroup& group) const {
  CHECK(group.size > 1, "a collective of one rank", spec(index).name, group.number);
  Op op = new_op(label, work, phase, index);
  op.engine = Engine::Collective;
  op.engines = engine_bit(Engine::Collective);
  graph.add_group(group.number, group.members);
  op.match_group = group.number;
  op.match_sequence = graph.next_match(group.number);
  return op;
}

// On a lane of its own: what follows waits for it, while gradients have time.
void StepContext::exchange(Graph& graph, Op& op, const RankGroup& group) const {
  CHECK(group.size > 1, "an exchange of one rank", group.number);
  op.engine = Engine::Collective;
  op.engines = engine_bit(Engine::Collective);
  op.lane_number = 1;
  graph.add_group(group.number, group.members);
  op.match_group = group.number;
  op.match_sequence = graph.next_match(group.number);
}

// A lane for each way and pass, so that none waits for what another brings; and others for buckets, as the first stage
// takes the last one's contributions when its own backward comes, long after the stages between.
void StepContext::transfer(Graph& graph, Op& op, std::size_t index, bool backward) const {
  const TransferSpec& spec = *this->spec(index).transfer;
  const RankGroup& group = backward ? spec.backward : spec.forward;
  const bool sends = spec.receives == backward;
  op.engine = spec.of_bucket ? Engine::Collective : Engine::P2P;
  op.engines = engine_bit(op.engine);
  op.lane_number = static_cast<std::int8_t>((backward || spec.of_bucket ? 2 : 0) + (sends ? 0 : 1));
  graph.add_group(group.number, group.members);
  op.match_group = group.number;
  op.match_sequence = graph.next_match(group.number);
}

Tensor StepContext::tensor_of(std::size_t index, std::string_view name, Role role, DType type,
                              std::int64_t bytes) const {
  Tensor tensor;
  tensor.name = spec(index).name + "." + std::string(name);
  tensor.role = role;
  tensor.type = type;
  tensor.bytes = bytes;
  tensor.layer = layers_[index];
  return tensor;
}

Tensor StepContext::bucket_tensor(std::size_t index, std::string_view name, Role role, DType type,
                                  std::int64_t bytes) const {
  Tensor tensor = tensor_of(index, name, role, type, bytes);
  tensor.layout = spec(index).layout;
  tensor.first_element = share_of(spec(index)).part * elements_of_part(index);
  tensor.on_host = spec(index).on_cpu;
  return tensor;
}

void update_in_place(Graph& graph, Op& op, TensorId tensor) {
  const ValueId old = graph.tensor(tensor).latest;
  op.reads.push_back(old);
  op.writes.push_back({graph.new_version(tensor), old});
}

TensorId add_plain_tensor(Graph& graph, const std::string& name, Role role, DType type, std::int64_t bytes,
                          bool persistent) {
  Tensor tensor;
  tensor.name = name;
  tensor.role = role;
  tensor.type = type;
  tensor.bytes = bytes;
  tensor.persistent = persistent;
  return graph.add_tensor(std::move(tensor));
}

}  // namespace tandem
