#include "core/policies/common/activations.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.hpp"
#include "core/machine/cost_model.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/hidden_offload.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// Numbers of blocks that are tried beyond the first that fits.
constexpr std::int64_t kTries = 32;

// Estimated times, in ns.
struct BlockCosts {
  std::int64_t step_ns = 0;                       // of the graph's forwards and backwards
  std::int64_t recompute_ns = 0, offload_ns = 0;  // of one block; offloading: the longer of away and back
  bool offloads() const { return offload_ns < recompute_ns; }
};

BlockCosts times_of(const CostModel& estimate, const Graph& graph, std::int32_t block) {
  BlockCosts times;
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase != Phase::Forward && op.phase != Phase::Recompute && op.phase != Phase::Backward) continue;
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

  // With no states resident, and all gradients on the device until the end.
  bool fits() const { return bytes_left(step, capacity_bytes, offloaded, {.resident = 0, .streamed = streamed}) >= 0; }
  // Layers whose states stay on the device beside those of `fewer` fewer layers under way.
  std::int32_t resident(bool gradients_leave, std::int64_t fewer) const {
    return most_resident(step, capacity_bytes, offloaded, streamed - fewer, gradients_leave);
  }
};

Candidate candidate(const Scenario& scenario, const std::vector<std::int32_t>& blocks, std::int64_t streamed,
                    const std::optional<BlockActivations>& choice) {
  const BlockActivations made = choice.value_or(BlockActivations{});
  return {made, first_step(scenario, choice), first_blocks(blocks, made.offload),
          tier_capacity_bytes(scenario, Tier::Device), streamed};
}

// How many layers' states stay on the device, and what that is good for.
struct StatesKept {
  std::int32_t resident = 0;
  bool gradients_leave = false;
  std::int64_t longer_path_ns = 0;  // of computing and the updates
};

// Waiting for gradients to leave is worth it if the estimate is so much shorter.
constexpr double kWorthWaiting = 0.95;

// If computing waits for gradients to leave, which are then few, more layers stay: one in place of an update under way,
// and of another where the updates would still take longer than computing. The estimate counts what is under way with
// the step's widest op, where most of it has ended by then.
StatesKept states_kept(const Scenario& scenario, const Candidate& c, std::int64_t compute_ns, const MemoryUse& use) {
  const auto with = [&](bool gradients_leave, std::int64_t fewer) {
    const std::int32_t resident = c.resident(gradients_leave, fewer);
    // A cost model remembers costs by work, and each graph numbers its own.
    const std::int64_t updates_ns = use.updates_ns(c.step, CostModel(scenario.machine), resident);
    return StatesKept{resident, gradients_leave, std::max(compute_ns, updates_ns)};
  };
  const bool fits = c.fits();
  const StatesKept staying = fits ? with(false, 0) : StatesKept{};
  if (fits && staying.longer_path_ns == compute_ns) return staying;  // computing alone is as long
  const StatesKept leaving = with(true, 1);
  const double worth = kWorthWaiting * static_cast<double>(staying.longer_path_ns);
  if (fits && static_cast<double>(leaving.longer_path_ns) >= worth) return staying;
  return leaving.longer_path_ns == compute_ns ? leaving : with(true, 2);
}

std::int64_t passes(const Scenario& scenario) {
  return std::max<std::int64_t>(scenario.workload.micro_batches / kFirstStepMicroBatches, 1);
}

// Among those that fit, the one whose longer path is shortest; all blocks, if none fits.
BlockActivations choose(const Scenario& scenario, const std::vector<std::int32_t>& blocks, const MemoryUse& use) {
  CHECK(!blocks.empty() && use.streamed >= 0 && use.updates_ns, blocks.size(), use.streamed);
  const CostModel estimate(scenario.machine);
  const BlockCosts times = times_of(estimate, first_step(scenario, BlockActivations{}), blocks.front());
  const auto with = [&](std::int64_t count) {
    return candidate(scenario, blocks, use.streamed,
                     times.offloads() ? BlockActivations{count, 0} : BlockActivations{0, count});
  };
  const auto all = static_cast<std::int64_t>(blocks.size());
  const auto longer_path_ns = [&](const Candidate& c) {
    const std::int64_t count = c.choice.offload + c.choice.recompute;
    const std::int64_t compute_ns = times.step_ns + count * std::min(times.recompute_ns, times.offload_ns);
    return states_kept(scenario, c, passes(scenario) * compute_ns, use).longer_path_ns;
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

// Of one block's activations over two lanes, each at work while the other is: the slower one is taken for as long as it
// is busy, and the largest value spends its time on the other.
Way way_of(const CostModel& estimate, const std::vector<std::int64_t>& bytes, Engine near, Engine far) {
  std::int64_t near_ns = 0, far_ns = 0, largest = 0;
  for (const std::int64_t b : bytes) {
    near_ns += estimate.copy_ns(near, b);
    far_ns += estimate.copy_ns(far, b);
    largest = std::max(largest, b);
  }
  if (near == far) return {near_ns, 0};
  return {std::max(near_ns, far_ns), estimate.copy_ns(near_ns < far_ns ? near : far, largest)};
}

// The first micro-batch, and in it each block's part.
std::vector<BlockTimes> block_times(const CostModel& estimate, const Graph& graph,
                                    const std::vector<std::int32_t>& blocks, Tier tier) {
  CHECK(std::is_sorted(blocks.begin(), blocks.end()), "blocks in forward order", blocks.size());
  std::vector<BlockTimes> times(blocks.size());
  std::int64_t now_ns = 0;
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (!graph.in_first_step(op) || op.micro_batch != 0 || op.engine != Engine::Compute ||
        op.phase == Phase::OptimizerStep)
      continue;
    const std::int64_t begin_ns = now_ns;
    now_ns += estimate.run_ns(graph, op.work, Engine::Compute);
    const auto block = std::lower_bound(blocks.begin(), blocks.end(), op.layer);
    if (block == blocks.end() || *block != op.layer) continue;
    BlockTimes& its = times[static_cast<std::size_t>(block - blocks.begin())];
    if (op.phase == Phase::Forward) its.saved_ns = now_ns;
    if (op.phase != Phase::Backward) continue;
    its.wanted_ns = begin_ns;
    std::vector<std::int64_t> bytes;
    for (ValueId value : saved_for(graph, op)) bytes.push_back(graph.value(value).bytes);
    const bool disk = tier == Tier::Disk;
    its.out = way_of(estimate, bytes, Engine::D2H, disk ? Engine::DiskWrite : Engine::D2H);
    its.back = way_of(estimate, bytes, Engine::H2D, disk ? Engine::DiskRead : Engine::H2D);
  }
  return times;
}

// How many blocks must leave, beside so many recomputed ones, for a step to fit with all states on the device.
std::int64_t fewest_that_fit(const Scenario& scenario, const std::vector<std::int32_t>& blocks,
                             std::int64_t recompute) {
  const std::int64_t capacity = tier_capacity_bytes(scenario, Tier::Device);
  std::int64_t fewest = 0;
  for (auto high = std::ssize(blocks); fewest < high;) {
    const std::int64_t middle = (fewest + high) / 2;
    if (bytes_left_beside_states(first_step(scenario, BlockActivations{middle, recompute}), capacity,
                                 first_blocks(blocks, middle)) >= 0)
      high = middle;
    else
      fewest = middle + 1;
  }
  return fewest;
}

constexpr std::int64_t kMostBlocks = 100000;

std::int64_t count_option(const Scenario& scenario, const char* name) {
  return int_option(scenario, name, 0, kMostBlocks, 0);
}

std::vector<Binding> bindings_of(const Scenario& scenario) {
  const std::string text = text_option(scenario, "offload_blocks");
  if (text.empty() || text == "auto" || count_option(scenario, "offload_blocks") > 0) return {};
  return {{.role = Role::Activation, .lowest = Tier::Device, .option = "offload_blocks: 0"}};
}

bool given(const Scenario& scenario) {
  return !text_option(scenario, "offload_blocks").empty() || !text_option(scenario, "recompute_blocks").empty();
}

}  // namespace

std::optional<BlockActivations> given_activations(const Scenario& scenario) {
  if (!given(scenario)) return std::nullopt;
  return BlockActivations{count_option(scenario, "offload_blocks"), count_option(scenario, "recompute_blocks")};
}

Activations::Activations(const Scenario& scenario, std::optional<BlockActivations> choice)
    : choice_(choice), segment_(scenario.workload.checkpoint_every), bindings_(bindings_of(scenario)) {
  CHECK(!choice_ || (choice_->offload >= 0 && choice_->recompute >= 0), choice_->offload, choice_->recompute);
  if (choice_ && choice_->offload > 0)
    trips_ = ActivationTrips(first_blocks(blocks_of(scenario), choice_->offload), {}, {});
}

Activations::Activations(const Scenario& scenario, const MemoryUse* use)
    : choice_(given_activations(scenario)),
      segment_(scenario.workload.checkpoint_every),
      bindings_(bindings_of(scenario)) {
  if (!choice_ && use == nullptr) return;
  const std::vector<std::int32_t> blocks = blocks_of(scenario);
  if (!choice_ && scenario.workload.recompute == "none" && !blocks.empty()) choice_ = choose(scenario, blocks, *use);
  if (choice_) trips_ = ActivationTrips(first_blocks(blocks, choice_->offload), {}, {});
  if (use == nullptr) return;
  const Candidate chosen = candidate(scenario, blocks, use->streamed, choice_);
  // What leaves instead of being recomputed is not counted: it takes the bus, not the lane of computing.
  const std::int64_t compute_ns =
      blocks.empty() ? 0 : times_of(CostModel(scenario.machine), chosen.step, blocks.front()).step_ns;
  const StatesKept kept = states_kept(scenario, chosen, passes(scenario) * compute_ns, *use);
  fit_ = !kept.gradients_leave;
  resident_ = kept.resident;
}

Activations::Activations(const Scenario& scenario, Destination destination)
    : segment_(scenario.workload.checkpoint_every), bindings_(bindings_of(scenario)) {
  const bool automatic =
      text_option(scenario, "offload_blocks").empty() || text_option(scenario, "offload_blocks") == "auto";
  BlockActivations choice{automatic ? 0 : count_option(scenario, "offload_blocks"),
                          count_option(scenario, "recompute_blocks")};
  if (!given(scenario) && scenario.workload.recompute != "none") return;
  const std::vector<std::int32_t> blocks = blocks_of(scenario);
  const CostModel estimate(scenario.machine);
  const std::vector<BlockTimes> times =
      block_times(estimate, first_step(scenario, BlockActivations{}), blocks, destination.tier);
  Ahead ahead{.of_running = true};
  if (automatic) {
    const std::int64_t others = std::max(std::ssize(blocks) - choice.recompute, std::int64_t{0});
    choice.offload = std::max(std::min(most_hidden(times, ahead.backwards), others),
                              fewest_that_fit(scenario, blocks, choice.recompute));
  }
  std::vector<std::int32_t> offloaded = first_blocks(blocks, choice.offload);
  ahead.backwards = backwards_ahead(times, std::ssize(offloaded), ahead.backwards).value_or(ahead.backwards);
  choice_ = choice;
  trips_ = ActivationTrips(std::move(offloaded), destination, ahead);
}

}  // namespace tandem
