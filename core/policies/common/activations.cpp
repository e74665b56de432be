#include "core/policies/common/activations.hpp"

#include <algorithm>

#include "core/machine/cost_model.hpp"
#include "core/policies/common/options.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// Backwards ahead of which activations are brought back.
constexpr std::size_t kBackwardsAhead = 2;

Graph first_step(const Scenario& scenario, BlockActivations choice) {
  Graph graph;
  const auto source =
      find_workload(scenario.workload.family)->make(scenario, {.delayed_update = false, .activations = choice});
  source->prologue(graph);
  source->append_step(graph, 0);
  return graph;
}

bool in_first_pass(const Op& op) { return op.step == 0 && op.micro_batch == 0; }

// Layers that can be recomputed, in forward order.
std::vector<std::int32_t> blocks_of(const Scenario& scenario) {
  const Graph graph = first_step(scenario, {.offload = 0, .recompute = scenario.workload.layers});
  std::vector<std::int32_t> layers;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::Recompute && in_first_pass(op)) layers.push_back(op.layer);
  std::sort(layers.begin(), layers.end());
  return layers;
}

// What a backward reads of what forwards wrote.
std::vector<ValueId> saved_for(const Graph& graph, const Op& backward) {
  std::vector<ValueId> values;
  for (ValueId read : backward.reads)
    if (graph.tensor_of(read).role == Role::Activation && graph.op(graph.value(read).producer).phase == Phase::Forward)
      values.push_back(read);
  return values;
}

// Whether the bus carries a block's away and back again sooner than the device computes it anew.
bool offloading_is_quicker(const CostModel& estimate, const Graph& graph, std::int32_t block) {
  std::int64_t recompute_ns = 0, offload_ns = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.layer != block || !in_first_pass(op)) continue;
    if (op.phase == Phase::Forward) recompute_ns += estimate.run_ns(graph, op.work, Engine::Compute);
    if (op.phase == Phase::Backward)
      for (ValueId value : saved_for(graph, op))
        offload_ns += std::max(estimate.copy_ns(Engine::D2H, graph.value(value).bytes),
                               estimate.copy_ns(Engine::H2D, graph.value(value).bytes));
  }
  return offload_ns < recompute_ns;
}

std::int64_t device_bytes(const Scenario& scenario) {
  const std::int64_t capacity = scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes;
  return scenario.limits.device_bytes > 0 ? std::min(capacity, scenario.limits.device_bytes) : capacity;
}

// All parameters where they are 16 bits wide and stay on the device; else those of two ops, one of them prefetched.
// With `reserve` buckets of states.
std::int64_t lasting_bytes(const Graph& graph, std::int64_t capacity, std::int64_t reserve) {
  std::int64_t all = 0, largest = 0, states = 0;
  std::vector<std::int64_t> states_of_layer;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role == Role::Parameter) {
      all += size_of(tensor.type) == 2 ? tensor.bytes : 0;
      largest = std::max(largest, tensor.bytes);
    } else if (tensor.role == Role::OptimizerState) {
      states_of_layer.resize(std::max(states_of_layer.size(), static_cast<std::size_t>(tensor.layer) + 1));
      states = std::max(states, states_of_layer[static_cast<std::size_t>(tensor.layer)] += tensor.bytes);
    }
  }
  const bool stay = all > 0 && all <= capacity / 2;
  return (stay ? all : 2 * largest) + reserve * states;
}

std::vector<std::int32_t> first(const std::vector<std::int32_t>& layers, std::int64_t count) {
  const auto end = std::min(layers.size(), static_cast<std::size_t>(count));
  return {layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The fewest blocks that do not keep theirs; all, if that does not do either.
BlockActivations choose(const Scenario& scenario, const std::vector<std::int32_t>& blocks, std::int64_t reserve) {
  const Graph all_kept = first_step(scenario, {});
  const bool offloads = offloading_is_quicker(CostModel(scenario.machine), all_kept, blocks.front());
  const auto choice = [&](std::int64_t count) {
    return offloads ? BlockActivations{count, 0} : BlockActivations{0, count};
  };
  const std::int64_t capacity = device_bytes(scenario);
  const std::int64_t room = capacity - lasting_bytes(all_kept, capacity, reserve);
  const auto fits = [&](std::int64_t count) {
    return activation_peak(first_step(scenario, choice(count)), first(blocks, choice(count).offload)) <= room;
  };
  std::int64_t low = 0, high = static_cast<std::int64_t>(blocks.size());
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (fits(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return choice(low);
}

}  // namespace

std::int64_t activation_peak(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers) {
  const auto away = [&](const Op& op) {
    return std::find(offloaded_layers.begin(), offloaded_layers.end(), op.layer) != offloaded_layers.end();
  };
  std::vector<std::int32_t> readers(static_cast<std::size_t>(graph.value_count()));
  std::vector<bool> here(readers.size());
  const auto counts = [&](ValueId value) {
    const Role role = graph.tensor_of(value).role;
    return role == Role::Activation || role == Role::Batch || role == Role::Gradient;
  };
  std::int64_t live = 0, peak = 0;
  const auto place = [&](ValueId value, bool there) {
    if (here[static_cast<std::size_t>(value)] == there || !counts(value)) return;
    here[static_cast<std::size_t>(value)] = there;
    live += there ? graph.value(value).bytes : -graph.value(value).bytes;
  };
  const auto leave = [&](OpId id) {  // after its forward, what an offloaded layer's backward reads is gone
    for (OpId later = id; later < graph.op_count(); ++later)
      if (const Op& op = graph.op(later);
          op.phase == Phase::Backward && op.layer == graph.op(id).layer && op.micro_batch == graph.op(id).micro_batch) {
        for (ValueId value : saved_for(graph, op)) place(value, false);
        return;
      }
  };
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase == Phase::Load && op.step == kNone) continue;
    for (ValueId read : op.reads) place(read, true);
    for (const Write& write : op.writes) place(write.value, true);
    peak = std::max(peak, live + op.workspace_bytes);
    for (ValueId read : op.reads)
      if (++readers[static_cast<std::size_t>(read)] == graph.value(read).readers) place(read, false);
    for (const Write& write : op.writes)
      if (write.reuses != kNone) place(write.reuses, false);
    if (op.phase == Phase::Forward && away(op)) leave(id);
  }
  return peak;
}

Activations::Activations(const Scenario& scenario, std::optional<std::int64_t> reserve) {
  constexpr std::int64_t kMost = 100000;
  const bool given =
      !text_option(scenario, "offload_blocks").empty() || !text_option(scenario, "recompute_blocks").empty();
  const BlockActivations wanted{int_option(scenario, "offload_blocks", 0, kMost, 0),
                                int_option(scenario, "recompute_blocks", 0, kMost, 0)};
  if (!given && (!reserve || scenario.workload.recompute != "none")) return;
  const std::vector<std::int32_t> blocks = blocks_of(scenario);
  if (blocks.empty()) return;
  choice_ = given ? wanted : choose(scenario, blocks, *reserve);
  offloaded_layers_ = first(blocks, choice_->offload);
}

void Activations::follow(const Graph& graph) {
  for (; seen_ < graph.op_count(); ++seen_) {
    const Op& op = graph.op(seen_);
    if (op.phase == Phase::Backward &&
        std::find(offloaded_layers_.begin(), offloaded_layers_.end(), op.layer) != offloaded_layers_.end())
      add_trip(graph, seen_);
  }
}

void Activations::add_trip(const Graph& graph, OpId backward) {
  Trip trip;
  trip.backward = backward;
  trip.values = saved_for(graph, graph.op(backward));
  for (ValueId value : trip.values) trip.forward = std::max(trip.forward, graph.value(value).producer);
  trips_.push_back(std::move(trip));
}

void Activations::move(const View& view, Decisions& decisions) {
  if (offloaded_layers_.empty()) return;
  follow(view.graph());
  while (!trips_.empty() && view.issued(trips_.front().backward)) trips_.pop_front();
  for (Trip& trip : trips_) {
    if (trip.left || !view.issued(trip.forward)) continue;
    trip.left = true;
    for (ValueId value : trip.values)
      if (decisions.copy(value, Tier::HostPinned) == Reply::Issued) decisions.release(value, Tier::Device);
  }
  const auto program = view.compute_program();
  std::size_t backwards = 0;
  for (std::size_t i = 0; i < program.size() && backwards < kBackwardsAhead; ++i) {
    if (view.graph().op(program[i]).phase == Phase::Forward) return;
    if (view.graph().op(program[i]).phase != Phase::Backward) continue;
    ++backwards;
    const auto trip =
        std::find_if(trips_.begin(), trips_.end(), [&](const Trip& t) { return t.backward == program[i]; });
    if (trip == trips_.end() || trip->returned || !trip->left) continue;
    for (ValueId value : trip->values)
      if (decisions.copy(value, Tier::Device) == Reply::NoRoom) return;
    trip->returned = true;
  }
}

}  // namespace tandem
