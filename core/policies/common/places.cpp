#include "core/policies/common/places.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.hpp"
#include "core/machine/lane_slow_down.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/trial.hpp"
#include "core/transforms/movable_inputs.hpp"

namespace tandem {
namespace {

bool is_movable(const Op& op) {
  return in_compute_program(op.phase) && op.may_run_on(Engine::Loader) && op.may_run_on(Engine::Compute);
}

// All that a run keeps on the device fits beside the steps of each part of its mix.
bool always_fits(const Scenario& resident) {
  constexpr std::int32_t kSteps = 2;
  if (!fits_in_trial(resident, policy_named(resident, "resident"))) return false;
  for (const MixPoint& point : resident.workload.mix.points) {
    if (point.from_step == 0 || point.from_step >= resident.steps) continue;
    const std::int32_t steps = std::min(kSteps, resident.steps - point.from_step);
    if (!trial_ns(resident, policy_named(resident, "resident"), point.from_step, steps)) return false;
  }
  return true;
}

Scenario under(const Scenario& scenario, const PolicyOptions& states) {
  Scenario inner = scenario;
  inner.policy = states;
  return inner;
}

PolicyOptions states_option(const Scenario& scenario) {
  const std::string name = text_option(scenario, "states");
  if (!name.empty() && name != "auto") return {name, {}};
  const PolicyOptions resident{"resident", {}};
  return always_fits(under(scenario, resident)) ? resident : PolicyOptions{"balanced", {}};
}

bool can_on_cpu(const CostModel& estimate) {
  return estimate.profile().cpu_compute != nullptr || estimate.profile().cpu_flops > 0;
}

}  // namespace

StepCosts step_costs(const Graph& graph, const CostModel& estimate, std::int32_t step) {
  StepCosts costs;
  costs.crowding = lane_slow_down(estimate.profile(), Engine::CpuCompute,
                                  engine_bit(Engine::CpuCompute) | engine_bit(Engine::Loader));
  const bool cpu = can_on_cpu(estimate), remote = estimate.profile().remote_workers > 0;
  const auto ns = [&](const Op& op, Engine engine) {
    return static_cast<double>(estimate.run_ns(graph, op.work, engine));
  };
  for (OpId id = graph.op_count(); id-- > graph.era().first_op;) {
    const Op& op = graph.op(id);
    if (op.step != step) break;
    costs.micro_batches = std::max<std::int64_t>(costs.micro_batches, op.micro_batch + 1);
    if (op.phase == Phase::Load) {
      costs.decoding += ns(op, Engine::Loader);
      if (remote && op.may_run_on(Engine::RemoteLoader)) costs.remote_decoding += ns(op, Engine::RemoteLoader);
    } else if (is_movable(op)) {
      costs.transforms += ns(op, Engine::Loader);
      costs.device_transforms += ns(op, Engine::Compute);
    } else if (op.phase == Phase::OptimizerStep) {
      costs.update += ns(op, Engine::Compute);
    } else if (op.micro_batch == 0 &&
               (op.phase == Phase::Forward || op.phase == Phase::Backward || op.phase == Phase::Recompute)) {
      costs.device += ns(op, Engine::Compute);
      if (cpu) costs.cpu += ns(op, Engine::CpuCompute);
    }
  }
  return costs;
}

double step_ns(const StepCosts& c, const Places& p) {
  const double remote = p.remote_share * c.remote_decoding;
  // Numbers that the CPU computes with are made on its side whatever the place of the others.
  const double on_device = p.transforms_on_workers ? 0
                                                   : static_cast<double>(c.micro_batches - p.cpu_micro_batches) /
                                                         static_cast<double>(c.micro_batches);
  const double workers = (1 - p.remote_share) * c.decoding + (1 - on_device) * c.transforms;
  const double device = static_cast<double>(c.micro_batches - p.cpu_micro_batches) * c.device + c.update +
                        on_device * c.device_transforms;
  const double cpu = p.cpu_micro_batches > 0 ? c.exchange + static_cast<double>(p.cpu_micro_batches) * c.cpu : 0;
  // Both are slower until the shorter of them is done.
  const double host = std::max(cpu, workers) + (c.crowding - 1) * std::min(cpu, workers);
  return std::max({device, remote, host});
}

Places best_places(const StepCosts& costs, AllowedPlaces allowed) {
  constexpr int kShares = 20;
  const int shares = allowed.remote && costs.remote_decoding > 0 ? kShares : 0;
  const std::int64_t most_on_cpu = allowed.cpu && costs.cpu > 0 ? costs.micro_batches - 1 : 0;
  Places best;
  double least = std::numeric_limits<double>::infinity();
  // What is nearest to doing nothing comes first, and must be beaten.
  for (std::int64_t on_cpu = 0; on_cpu <= most_on_cpu; ++on_cpu)
    for (int share = 0; share <= shares; ++share)
      for (const bool on_workers : {false, true}) {
        if (on_workers && !allowed.transforms) continue;
        const Places places{on_workers, static_cast<double>(share) / kShares, on_cpu};
        const double ns = step_ns(costs, places);
        if (ns < least) best = places, least = ns;
      }
  return best;
}

std::optional<std::int64_t> cpu_share_option(const Scenario& scenario) {
  const std::string text = text_option(scenario, "cpu_share");
  if (text.empty() || text == "auto") return std::nullopt;
  const std::int64_t all = scenario.workload.micro_batches;
  const double share = number_option(scenario, "cpu_share", 0, 1, 0);
  return std::min<std::int64_t>(std::llround(share * static_cast<double>(all)), all - 1);
}

PlacedPolicy::PlacedPolicy(const Scenario& scenario, AllowedPlaces movable)
    : PlacedPolicy(scenario, movable, states_option(scenario)) {}

PlacedPolicy::PlacedPolicy(const Scenario& scenario, AllowedPlaces movable, const PolicyOptions& states)
    : scenario_(scenario),
      movable_(movable),
      states_name_(states.name),
      states_(policy_named(under(scenario, states), states.name)) {}

PolicyTraits PlacedPolicy::traits() const {
  PolicyTraits traits = states_->traits();
  if (movable_.transforms) traits.rewrites.push_back(movable_inputs());
  if (movable_.cpu && scenario_.workload.micro_batches > 1 && scenario_.workload.devices == 1)
    traits.rewrites.push_back(split_batch(cpu_share_));
  return traits;
}

double PlacedPolicy::remote_share(const View& view, OpId load) {
  follow(view);
  return places_.at(view.graph().op(load).step).remote_share;
}

// The ops that were appended since: a step's places are chosen when its first one is seen, and hold for it.
void PlacedPolicy::follow(const View& view) {
  const Graph& graph = view.graph();
  for (seen_ = std::max(seen_, graph.era().first_op); seen_ < graph.op_count(); ++seen_) {
    const Op& op = graph.op(seen_);
    if (op.step == kNone) continue;
    if (op.step != seen_step_) {
      seen_step_ = op.step;
      constexpr std::size_t kMostHeld = 64;  // more than are appended ahead
      if (places_.size() > kMostHeld) places_.erase(places_.begin());
      places_[op.step] = choose(view, op.step);
      cpu_share_->micro_batches = places_[op.step].cpu_micro_batches;  // of the step after this one
    }
    if (is_movable(op) && places_[op.step].transforms_on_workers) for_workers_.push_back(seen_);
    if (op.engine == Engine::CpuCompute && in_compute_program(op.phase)) add_for_cpu(graph, op);
  }
}

// What it reads of a batch is made on workers: the device's transforms come in the order of its program, so that the
// CPU would begin when the device is done with all micro-batches before.
void PlacedPolicy::add_for_cpu(const Graph& graph, const Op& op) {
  for (const ValueId read : op.reads)
    if (const OpId producer = graph.value(read).producer; producer != kNone && is_movable(graph.op(producer)))
      for_workers_.push_back(producer);
  for_cpu_.push_back(seen_);
}

void PlacedPolicy::run_transforms(const View& view, Decisions& decisions) {
  while (!for_workers_.empty()) {
    const OpId op = for_workers_.front();
    if (!view.issued(op) && decisions.run(op, Engine::Loader) != Reply::Issued) return;
    for_workers_.pop_front();
  }
}

// One ahead: what computes on the device counts them, too.
void PlacedPolicy::run_on_cpu(const View& view, Decisions& decisions) {
  while (!for_cpu_.empty() && view.queued(Engine::CpuCompute) == 0) {
    const OpId op = for_cpu_.front();
    if (!view.issued(op) && decisions.run(op, Engine::CpuCompute) != Reply::Issued) return;
    for_cpu_.pop_front();
  }
}

// Where the next op's items are still being made, another branch whose items are there goes first.
void PlacedPolicy::run_early(const View& view, Decisions& decisions) {
  const Graph& graph = view.graph();
  const auto there = [&](OpId id) {
    const Op& op = graph.op(id);
    return std::all_of(op.reads.begin(), op.reads.end(), [&](ValueId read) {
      return graph.tensor_of(read).role != Role::Batch || view.arrived(read, Tier::HostPinned) ||
             view.arrived(read, Tier::Device);
    });
  };
  if (view.computing() > 0) return;  // the lane has work
  const auto program = view.compute_program();
  if (program.empty() || there(program.front())) return;
  const Op& first = graph.op(program.front());
  for (const OpId id : program) {
    const Op& op = graph.op(id);
    if (op.step != first.step || op.micro_batch != first.micro_batch || op.phase != Phase::Forward) return;
    if (op.engine != Engine::Compute || view.issued(id) || !view.issuable(id) || !there(id)) continue;
    if (view.missing_bytes(id) > view.free_bytes(Tier::Device)) return;
    decisions.run(id);
    return;
  }
}

void PlacedPolicy::decide(const View& view, Decisions& decisions) {
  follow(view);
  run_transforms(view, decisions);
  run_on_cpu(view, decisions);
  run_early(view, decisions);
  states_->decide(view, decisions);
}

}  // namespace tandem
