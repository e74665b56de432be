#include "adapt/adapter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/steps.hpp"
#include "core/run/policies.hpp"
#include "core/run/succession.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {
namespace {

// Steps until a policy has settled, and steps that tell how long it then takes.
constexpr std::int32_t kSettling = 3;
constexpr std::size_t kTelling = 4;
// Of a new level: the first is of a step in which it may have begun.
constexpr std::size_t kNewLevel = 3;
constexpr Engine kLearnt[] = {Engine::Compute,      Engine::H2D,      Engine::D2H,
                              Engine::CpuOptimizer, Engine::DiskRead, Engine::DiskWrite};

double median(std::vector<double> numbers) { return spread_of(std::move(numbers), 0).median; }

bool is_exact(const Scenario& scenario) {
  return !approximate(find_policy(scenario.policy.name)->make(scenario)->traits().rewrites);
}

}  // namespace

std::vector<PolicyOptions> adapt_candidates(const Scenario& scenario) {
  const Scenario from = scenario_under(scenario, policy_after(scenario, scenario.first_step));
  const bool exact = is_exact(from);
  std::vector<PolicyOptions> able;
  for (const PolicyEntry* entry : policies()) {
    const Scenario to = scenario_under(scenario, {std::string(entry->name), {}});
    try {
      if (to.policy != from.policy && (!exact || is_exact(to)) && why_no_switch(from, to).empty())
        able.push_back(to.policy);
    } catch (const ConfigError&) {  // it does not train this
    }
  }
  return able;
}

Adapter::Adapter(EventLog& inner, const Graph& graph, const Scenario& scenario, std::unique_ptr<Forecaster> forecaster,
                 AdaptOptions options)
    : inner_(inner),
      scenario_(scenario),
      forecaster_(std::move(forecaster)),
      options_(std::move(options)),
      rates_(graph, scenario.machine, [this](const StepRates& rates) { end_step(rates); }),
      now_(policy_after(scenario, scenario.first_step)),
      plan_{{}, scenario.first_step},
      quiet_until_(kSettling) {}

void Adapter::append(const EventBatch& batch) {
  inner_.append(batch);
  rates_.take(batch);
}

void Adapter::append(std::span<const Command> commands) {
  inner_.append(commands);
  rates_.take(commands);
}

std::vector<Input> Adapter::take_inputs() {
  if (options_.usage)
    if (std::optional<Usage> usage = options_.usage()) inputs_.emplace_back(std::move(*usage));
  look_for_answer();
  return std::exchange(inputs_, {});
}

void Adapter::end_step(const StepRates& rates) {
  step_ = training_step(scenario_, rates.step);
  note_usage(rates);
  latest_.push_back(rates.seconds());
  if (latest_.size() > kTelling) latest_.pop_front();
  if (rates.step < quiet_until_) return;  // a policy that settles says nothing of the machine
  note_outcome(rates);
  changed_ = learn(rates) || changed_;
  const bool changing = std::any_of(levels_.begin(), levels_.end(), [](const LaneLevel& l) { return l.changing(); });
  ++steps_learnt_;
  if (asked_ || changing) return;
  if (steps_learnt_ >= ChangeDetector::kLearnt && !std::exchange(began_, true)) {
    ask("start");
  } else if (mix_changed()) {
    ask("the mix of samples has changed");
  } else if (std::exchange(changed_, false)) {
    std::string cause;
    for (const Engine lane : kLearnt) {
      const LaneLevel& level = levels_[static_cast<std::size_t>(lane)];
      if (level.time != 1)
        cause += fmt::format("{}{} takes {:.2f} times what it did at the start", cause.empty() ? "" : ", ",
                             name_of(lane), level.time);
    }
    ask(cause);
  }
}

// Whether the next step's mix is so much another one than that of `step` that another policy may be the better one.
bool Adapter::mix_differs_from(std::int32_t step) const {
  constexpr double kMuch = 0.1;
  const MixOptions& mix = scenario_.workload.mix;
  for (const MixPoint& point : mix.points)
    for (const auto& [modality, any] : point.shares)
      if (std::abs(mix.share(modality, step_ + 1) - mix.share(modality, step)) > kMuch) return true;
  return false;
}

// Once it holds: what policies forecast is of steps like the next. Those before are no measure of such forecasts.
bool Adapter::mix_changed() {
  if (!mix_differs_from(mix_of_step_)) return false;
  mix_of_step_ = step_ + 1;
  latest_.clear();
  return true;
}

// What the scheduler is told of the machine's use: of the simulated one as of the real one.
void Adapter::note_usage(const StepRates& rates) {
  const auto share = [&](Engine lane) {
    const double length = std::max(1.0, static_cast<double>(rates.end_ns - rates.begin_ns));
    return std::llround(1e6 * static_cast<double>(rates.busy_ns[static_cast<std::size_t>(lane)]) / length);
  };
  Usage usage;
  for (const Engine lane : kLearnt) usage.figures["step." + std::string(name_of(lane)) + "_busy_ppm"] = share(lane);
  for (const Engine lane : kLearnt)
    usage.figures["step." + std::string(name_of(lane)) + "_queued"] = rates.queued[static_cast<std::size_t>(lane)];
  inputs_.emplace_back(std::move(usage));
}

// True where a lane has a new level.
bool Adapter::learn(const StepRates& rates) {
  bool changed = false;
  for (const Engine lane : kLearnt) {
    const double time = rates.times[static_cast<std::size_t>(lane)];
    if (time <= 0) continue;
    LaneLevel& level = levels_[static_cast<std::size_t>(lane)];
    if (!level.changing() && !level.drift.take(time)) continue;
    level.since.push_back(time);
    if (level.since.size() < kNewLevel) continue;
    level.since.erase(level.since.begin());
    level.time *= median(level.since) / level.drift.level();
    level.since.clear();
    level.drift.restart();
    changed = true;
  }
  return changed;
}

void Adapter::ask(const std::string& cause) {
  if (forecaster_ == nullptr || step_ + 1 >= scenario_.steps) return;
  AdaptDecision decision;
  decision.step = step_ + 1;
  decision.cause = cause;
  for (const Engine lane : kLearnt) {
    const double time = levels_[static_cast<std::size_t>(lane)].time;
    if (time == 1) continue;
    decision.lane_times[std::string(name_of(lane))] = time;
    known_.time_ppm[lane] = std::max<std::int64_t>(1, std::llround(time * 1e6));
  }
  std::vector<PolicyOptions> others;
  if (known_ != plan_.rates) inputs_.emplace_back(known_);
  if (known_ != plan_.rates || mix_differs_from(plan_.step)) others.push_back(now_);  // made anew, it would know
  for (const PolicyOptions& policy : options_.candidates)
    if (policy != now_) others.push_back(policy);
  asked_ = std::move(decision);
  forecaster_->ask(now_, plan_, others, known_, step_ + 1);
}

void Adapter::look_for_answer() {
  if (!asked_) return;
  if (auto forecasts = forecaster_->answer()) decide(std::move(*forecasts));
}

// What forecasts miss of this machine now, they miss of all policies: where the one in force takes much longer, or
// less, than its own forecast, the others are taken to do so, too.
double Adapter::missed(const Forecast& now) const {
  constexpr double kMuch = 0.1;
  if (latest_.size() < kTelling || now.step_s <= 0) return 1;
  const double times = median({latest_.begin(), latest_.end()}) / now.step_s;
  return std::abs(std::log(times)) > kMuch ? times : 1;
}

// The policy whose steps gain the most over what is left of the run; the one in force where none gains enough.
void Adapter::decide(std::vector<Forecast> forecasts) {
  AdaptDecision decision = std::move(*asked_);
  asked_.reset();
  decision.after_step = step_ + 1;
  const double times = missed(forecasts.front());
  for (Forecast& f : forecasts) f.step_s *= times;
  for (const Forecast& f : forecasts) decision.candidates.push_back({f.policy.name, f.step_s, f.switch_s, f.why_not});
  const Forecast& now = forecasts.front();
  decision.chosen = now.policy.name;
  decision.forecast_step_s = now.step_s;
  const Forecast* best = nullptr;
  double best_gain_s = 0;
  const double left = static_cast<double>(scenario_.steps - (step_ + 1));
  for (std::size_t i = 1; i < forecasts.size() && now.why_not.empty(); ++i) {
    const Forecast& f = forecasts[i];
    const double gain_s = (now.step_s * (1 - options_.least_gain) - f.step_s) * left - f.switch_s;
    if (f.why_not.empty() && gain_s > best_gain_s) best = &f, best_gain_s = gain_s;
  }
  if (best != nullptr)
    switch_to(decision, now, *best);
  else
    tell(fmt::format("after step {} ({}): stays with {}, {:.4g} s a step by its forecast", decision.after_step,
                     decision.cause, now.policy.name, now.step_s));
  decisions_.push_back(std::move(decision));
}

void Adapter::switch_to(AdaptDecision& decision, const Forecast& now, const Forecast& best) {
  decision.chosen = best.policy.name;
  decision.switches = true;
  decision.forecast_step_s = best.step_s;
  inputs_.emplace_back(SwitchPolicy{best.policy.name, best.policy.options, kNone});
  now_ = best.policy;
  plan_ = {known_, step_ + 1};
  settled_.clear();
  for (LaneLevel& level : levels_) level.drift.restart(), level.since.clear();  // lanes meet others from here on
  // Steps that are appended end under the policy before.
  constexpr std::int32_t kAhead = 3;
  quiet_until_ = step_ - scenario_.first_step + 1 + kAhead + kSettling;
  tell(fmt::format("after step {} ({}): from {} to {}, {:.4g} s a step to {:.4g} by their forecasts, for {:.3g} s once",
                   decision.after_step, decision.cause, now.policy.name,
                   best.policy == now.policy ? "the same, planned anew" : best.policy.name, now.step_s, best.step_s,
                   best.switch_s));
}

void Adapter::note_outcome(const StepRates& rates) {
  if (decisions_.empty() || !decisions_.back().switches || decisions_.back().measured_step_s) return;
  settled_.push_back(rates.seconds());
  if (settled_.size() < kTelling) return;
  AdaptDecision& last = decisions_.back();
  last.measured_step_s = median(settled_);
  tell(fmt::format("{} takes {:.4g} s a step, {:+.1f}% from its forecast", last.chosen, *last.measured_step_s,
                   100 * (*last.measured_step_s / last.forecast_step_s - 1)));
}

}  // namespace tandem
