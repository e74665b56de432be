#include "core/policies/common/activations.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/machine/cost_model.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// Backwards ahead of which activations are brought back.
constexpr std::size_t kBackwardsAhead = 2;

// Numbers of blocks that are tried beyond the first that fits.
constexpr std::int64_t kTries = 32;

// Estimated times, in ns.
struct BlockTimes {
  std::int64_t step_ns = 0;                       // of computing, with all kept
  std::int64_t recompute_ns = 0, offload_ns = 0;  // of one block; offloading: the longer of away and back
  bool offloads() const { return offload_ns < recompute_ns; }
};

BlockTimes times_of(const CostModel& estimate, const Graph& graph, std::int32_t block) {
  BlockTimes times;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase != Phase::Forward && op.phase != Phase::Backward) continue;
    const std::int64_t run_ns = estimate.run_ns(graph, op.work, Engine::Compute);
    times.step_ns += run_ns;
    if (op.layer != block) continue;
    if (op.phase == Phase::Forward) times.recompute_ns += run_ns;
    if (op.phase == Phase::Backward)
      for (ValueId value : saved_for(graph, op))
        times.offload_ns += std::max(estimate.copy_ns(Engine::D2H, graph.value(value).bytes),
                                     estimate.copy_ns(Engine::H2D, graph.value(value).bytes));
  }
  return times;
}

// A step in which so many blocks do not keep theirs.
struct Candidate {
  BlockActivations choice;
  Graph step;
  std::vector<std::int32_t> offloaded;
  std::int64_t capacity_bytes, streamed;

  // With no states resident.
  bool fits() const { return bytes_left(step, capacity_bytes, offloaded, {0, streamed}) >= 0; }
  // Layers whose states stay on the device.
  std::int32_t resident() const { return most_resident(step, capacity_bytes, offloaded, streamed); }
};

Candidate candidate(const Scenario& scenario, const std::vector<std::int32_t>& blocks, std::int64_t streamed,
                    const std::optional<BlockActivations>& choice) {
  const BlockActivations made = choice.value_or(BlockActivations{});
  return {made, first_step(scenario, choice), first_blocks(blocks, made.offload),
          tier_capacity_bytes(scenario, Tier::Device), streamed};
}

// Among those that fit, the one whose longer path is shortest; all blocks, if none fits.
BlockActivations choose(const Scenario& scenario, const std::vector<std::int32_t>& blocks, const MemoryUse& use) {
  const CostModel estimate(scenario.machine);
  const BlockTimes times = times_of(estimate, first_step(scenario, BlockActivations{}), blocks.front());
  const auto with = [&](std::int64_t count) {
    return candidate(scenario, blocks, use.streamed,
                     times.offloads() ? BlockActivations{count, 0} : BlockActivations{0, count});
  };
  const auto all = static_cast<std::int64_t>(blocks.size());
  const auto longer_path_ns = [&](const Candidate& c) {
    const std::int64_t count = c.choice.offload + c.choice.recompute;
    const std::int64_t passes = std::max<std::int64_t>(scenario.workload.micro_batches / kFirstStepMicroBatches, 1);
    const std::int64_t compute_ns = times.step_ns + count * std::min(times.recompute_ns, times.offload_ns);
    // A cost model remembers costs by work, and each graph numbers its own.
    return std::max(passes * compute_ns, use.updates_ns(c.step, CostModel(scenario.machine), c.resident()));
  };
  std::int64_t fewest = 0;
  for (std::int64_t high = all; fewest < high;) {
    const std::int64_t middle = (fewest + high) / 2;
    if (with(middle).fits())
      high = middle;
    else
      fewest = middle + 1;
  }
  BlockActivations best = with(fewest).choice;
  std::int64_t best_ns = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t count = fewest; count <= all; count += std::max<std::int64_t>((all - fewest) / kTries, 1)) {
    const Candidate c = with(count);
    if (const std::int64_t ns = longer_path_ns(c); ns < best_ns) best = c.choice, best_ns = ns;
  }
  return best;
}

}  // namespace

std::optional<BlockActivations> given_activations(const Scenario& scenario) {
  constexpr std::int64_t kMost = 100000;
  const BlockActivations given{int_option(scenario, "offload_blocks", 0, kMost, 0),
                               int_option(scenario, "recompute_blocks", 0, kMost, 0)};
  const bool any =
      !text_option(scenario, "offload_blocks").empty() || !text_option(scenario, "recompute_blocks").empty();
  return any ? std::optional(given) : std::nullopt;
}

Activations::Activations(const Scenario& scenario, std::optional<BlockActivations> choice) : choice_(choice) {
  if (choice_ && choice_->offload > 0) offloaded_layers_ = first_blocks(blocks_of(scenario), choice_->offload);
}

Activations::Activations(const Scenario& scenario, const MemoryUse* use) : choice_(given_activations(scenario)) {
  if (!choice_ && use == nullptr) return;
  const std::vector<std::int32_t> blocks = blocks_of(scenario);
  if (!choice_ && scenario.workload.recompute == "none" && !blocks.empty()) choice_ = choose(scenario, blocks, *use);
  if (choice_) offloaded_layers_ = first_blocks(blocks, choice_->offload);
  if (use == nullptr) return;
  const Candidate chosen = candidate(scenario, blocks, use->streamed, choice_);
  fit_ = chosen.fits();
  resident_ = chosen.resident();
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
