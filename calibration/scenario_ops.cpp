#include "calibration/scenario_ops.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "adapt/profile_ops.hpp"
#include "calibration/dry_run.hpp"
#include "calibration/text.hpp"
#include "core/base/errors.hpp"
#include "core/machine/lanes.hpp"
#include "core/run/succession.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/placement.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/launch_clock.hpp"
#include "runtime/train.hpp"

namespace tandem {
namespace {

constexpr const char* kResident = "resident";
constexpr std::int32_t kDrySteps = 3, kMostSteps = 1000;
// Steps that count, at the least, however long they take: launches come again from the third on; samples of an op for
// its spread to say something.
constexpr std::int32_t kLeastSteps = 5;
constexpr std::size_t kLeastSamples = 5;

using Ops = std::map<OpKey, std::int64_t>;

// What no op of a training step depends on is left out. Nothing is learnt, so that no number grows beyond what its
// precision holds: hundreds of steps may be run on a few batches.
Scenario bare(const Scenario& scenario) {
  Scenario out = scenario;
  out.checkpoint = {};
  out.validation = {};
  out.switches.clear();
  out.truth = {};
  out.first_step = 0;
  out.resume_folder.clear();
  out.steps = kMostSteps;
  out.optimizer.learning_rate = out.optimizer.final_learning_rate = 0;
  return out;
}

Scenario resident(const Scenario& scenario) {
  PolicyOptions policy{kResident, {}};
  const auto modules = scenario.policy.options.find(std::string(kCpuModules));
  if (modules != scenario.policy.options.end()) policy.options.insert(*modules);
  Scenario out = scenario_under(scenario, policy);
  out.limits.device_bytes = 0;
  return out;
}

bool counts_blocks(const std::string& key) { return key == "layers" || key.ends_with("_layers"); }

// None: it has no more blocks than that, or no key that says how many.
std::optional<Scenario> with_blocks(const Scenario& scenario, std::int64_t blocks) {
  Scenario out = scenario;
  bool is_less = false;
  for (const auto& [key, value] : scenario.workload.keys.all()) {
    if (!counts_blocks(key) || !std::holds_alternative<std::int64_t>(value)) continue;
    if (std::get<std::int64_t>(value) <= blocks) continue;
    out.workload.keys.set(key, blocks);
    is_less = true;
  }
  return is_less ? std::optional(out) : std::nullopt;
}

std::size_t shared_ops(const Ops& a, const Ops& b) {
  return static_cast<std::size_t>(
      std::count_if(a.begin(), a.end(), [&](const auto& op) { return b.contains(op.first); }));
}

struct Choice {
  Scenario scenario;
  DryRun dry;
};

// The scenario itself where it fits, else with so many blocks as fit and have most of its ops. None: it fits with none.
// A family may refuse fewer.
std::optional<Choice> what_fits(const Scenario& scenario, const Ops& wanted) {
  DryRun whole = dry_run(scenario, kDrySteps);
  if (whole.fits) return Choice{scenario, std::move(whole)};
  std::optional<Choice> best;
  for (const std::int64_t blocks : {2, 4, 6}) {
    const std::optional<Scenario> fewer = with_blocks(scenario, blocks);
    if (!fewer) break;
    try {
      DryRun dry = dry_run(*fewer, kDrySteps);
      if (dry.fits && (!best || shared_ops(wanted, dry.ops) > shared_ops(wanted, best->dry.ops)))
        best = Choice{*fewer, std::move(dry)};
    } catch (const ConfigError&) {
      continue;
    }
  }
  return best;
}

// No more of the host than the run needs: what a device copies from is pinned before the first step, at 0.16 s a GiB.
Scenario with_little_host(const Choice& choice) {
  constexpr std::int64_t kSlack = std::int64_t{64} << 20;
  Scenario out = choice.scenario;
  out.limits.host_bytes = choice.dry.host_bytes + choice.dry.host_bytes / 16 + kSlack;
  const auto pinned = static_cast<std::size_t>(Tier::HostPinned);
  if (out.limits.host_bytes >= choice.scenario.machine.tiers[pinned].capacity_bytes) return choice.scenario;
  const DryRun little = dry_run(out, kDrySteps);
  const bool is_same = little.fits && shared_ops(choice.dry.ops, little.ops) == choice.dry.ops.size();
  return is_same ? out : choice.scenario;
}

// Ends the run once enough is known of its ops, or the time is used up, which counts from its first step on: making
// and pinning memory takes seconds.
class Enough final : public EventLog {
 public:
  Enough(const OpLearner*& learner, double seconds, double error)
      : learner_(learner), seconds_(seconds), error_(error) {}
  void append(std::span<const Command>) override {}
  void append(const EventBatch&) override {
    const std::int32_t steps = learner_->steps();
    if (steps == looked_at_) return;
    if (looked_at_ == 0) start_ = std::chrono::steady_clock::now();
    looked_at_ = steps;
    if (steps < kLeastSteps) return;
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (spent >= seconds_ || learner_->is_settled(error_, kLeastSamples)) is_enough = true;
  }
  std::atomic<bool> is_enough = false;

 private:
  const OpLearner*& learner_;
  double seconds_, error_;
  std::int32_t looked_at_ = 0;
  std::chrono::steady_clock::time_point start_;
};

std::vector<OpLaunch> launches_of(LaunchClock& clock) {
  std::vector<OpLaunch> out;
  for (const LaunchClock::Launch& launch : clock.take())
    out.push_back({launch.ns, launch.how == LaunchClock::How::Recorded, launch.how == LaunchClock::How::Repeated});
  return out;
}

// One run. `records`: launches that come again are recorded, as runs do on a device that can.
LearntOps run_once(const Scenario& scenario, const ScenarioOpsOptions& options, double seconds, bool records,
                   std::int32_t& steps) {
  const auto clock = options.device ? std::make_shared<LaunchClock>(options.device, records) : nullptr;
  TrainOptions train;
  if (!options.scratch_folder.empty()) train.scratch_directory = options.scratch_folder;
  train.library = options.library();
  train.device = clock;
  const OpLearner* seen = nullptr;
  Enough enough(seen, seconds, options.error);
  train.interrupt = &enough.is_enough;
  Training training(scenario, train);
  OpLearner::Options learns;
  if (clock && records) learns.records = [](const Work& work) { return find_body(work).repeatable; };
  learns.notes_launches = clock != nullptr && lane_count(scenario.machine, Engine::Compute) == 1;
  learns.source = options.source;
  const bool learns_launches = learns.notes_launches;
  OpLearner learner(enough, training.graph(), scenario.machine, std::move(learns));
  seen = &learner;
  training.run(&learner);
  if (learns_launches) learner.add_launches(launches_of(*clock));
  steps += learner.steps();
  return learner.learnt();
}

// Both ways of launching say something of one op.
void add(LearntOps& to, const LearntOps& more) {
  for (const auto& [key, op] : more) {
    const auto [found, fresh] = to.try_emplace(key, op);
    if (fresh) continue;
    MeasuredOp& known = found->second.op;
    if (known.afresh.samples == 0) known.afresh = op.op.afresh;
    if (known.repeated.samples == 0) known.repeated = op.op.repeated;
    if (known.dispatch_ns == 0) known.dispatch_ns = op.op.dispatch_ns;
    if (known.repeat_ns == 0) known.repeat_ns = op.op.repeat_ns;
    if (known.record_ns == 0) known.record_ns = op.op.record_ns;
  }
}

LearntOps time_steps(const Choice& choice, const ScenarioOpsOptions& options) {
  const Scenario scenario = with_little_host(choice);
  const auto start = std::chrono::steady_clock::now();
  std::int32_t steps = 0;
  LearntOps learnt;
  const double each_s = options.seconds / (options.device ? 2 : 1);
  add(learnt, run_once(scenario, options, each_s, true, steps));
  if (options.device) add(learnt, run_once(scenario, options, each_s, false, steps));
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.tell)
    options.tell(printed("  policy %s: %zu ops from %d steps, in %.3g s", scenario.policy.name.c_str(), learnt.size(),
                         steps, spent));
  return learnt;
}

bool has_all(const LearntOps& learnt, const Ops& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& op) { return learnt.contains(op.first); });
}

}  // namespace

std::vector<OpKey> ScenarioOps::missing() const {
  std::vector<OpKey> out;
  for (const auto& [key, count] : ops)
    if (!learnt.contains(key)) out.push_back(key);
  return out;
}

ScenarioOps time_scenario_ops(const Scenario& scenario, const ScenarioOpsOptions& options) {
  if (rank_count(scenario) > 1) throw ConfigError("workload.devices: ops are measured for one rank so far; allowed: 1");
  const Scenario question = bare(scenario);
  const DryRun asked = dry_run(question, kDrySteps);
  ScenarioOps out;
  out.ops = asked.ops;
  const std::optional<Choice> in_place = what_fits(resident(question), asked.ops);
  if (in_place) add(out.learnt, time_steps(*in_place, options));
  if (question.policy.name != kResident && !has_all(out.learnt, asked.ops)) {
    const std::optional<Choice> own = what_fits(question, asked.ops);
    if (own) add(out.learnt, time_steps(*own, options));
  }
  if (out.learnt.empty()) throw DoesNotFit(asked.fits ? "no step was long enough to be timed" : asked.why_not);
  out.learnt = of_all_cores(std::move(out.learnt), scenario);
  return out;
}

}  // namespace tandem
