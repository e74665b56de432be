#include "analysis/interval.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/blame.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {
namespace {

// 90% of a normal distribution lie within so many standard deviations of its mean.
constexpr double kDeviations = 1.6448536269514722;
// Of a measured op, however much its repeats in one run were alike: another run is another hour. As of calibration's
// uncertainties.
constexpr double kLeastDeviation = 0.01;
constexpr double kNothing = 1e-9;  // of sums that are equal but for rounding

std::optional<TimeCause> cause_of(Cause cause) {
  switch (cause) {
    case Cause::Compute:
      return TimeCause::Compute;
    case Cause::H2D:
    case Cause::D2H:
      return TimeCause::Copies;
    case Cause::CpuOptimizer:
      return TimeCause::CpuOptimizer;
    case Cause::Disk:
      return TimeCause::Disk;
    case Cause::Dispatch:
      return TimeCause::Dispatch;
    default:
      return std::nullopt;
  }
}

double truth_factor(const Command& command, const Truth& truth) {
  if (command.kind == CommandKind::Copy) return truth.copy_time;
  if (command.lane.kind() == Engine::CpuOptimizer) return truth.optimizer_time;
  return command.lane.kind() == Engine::Compute ? truth.compute_time : 1;
}

class PathSum {
 public:
  PathSum(const RankTimeline& rank, const Scenario& scenario)
      : rank_(rank), truth_(scenario.truth), cost_(scenario.machine) {}

  void add(const Held& held) {
    const auto s = seconds(held.ns);
    const auto cause = cause_of(held.cause);
    (cause ? sum_.of(*cause) : sum_.other_s) += s;
    if (cause && held.by != kNoCommand) add_measured(*cause, s, *rank_.at(held.by).command);
    if (cause && held.by != kNoCommand) sum_.of(TimeCause::Sharing) += s * added_share(rank_.at(held.by));
  }
  const PathTimes& sum() const { return sum_; }

 private:
  void add_measured(TimeCause cause, double s, const Command& command) {
    if (command.kind != CommandKind::Run) return;
    const MeasuredOp* op = cost_.measured(*rank_.graph, rank_.graph->op(command.op).work, command.lane.kind());
    if (op == nullptr) return;
    sum_.measured_s[static_cast<std::size_t>(cause)] += s;
    sum_.deviation_s[static_cast<std::size_t>(cause)] += s * std::max(op->usual().deviation(), kLeastDeviation);
  }

  // The share of a command's time that it would not take alone.
  double added_share(const TimedCommand& timed) const {
    const auto took = static_cast<double>(timed.finished.ns - timed.started.ns);
    return took > 0 ? std::max(0.0, 1 - alone_ns(*timed.command) / took) : 0;
  }

  double alone_ns(const Command& command) const {
    const double factor = truth_factor(command, truth_);
    if (command.kind == CommandKind::Copy)
      return factor * static_cast<double>(cost_.copy_ns(command.lane.kind(), command.part.bytes));
    const Op& op = rank_.graph->op(command.op);
    const std::int64_t whole = op.writes.empty() ? 0 : rank_.graph->value(op.writes.front().value).bytes;
    const std::int64_t part = command.part.bytes == 0 ? whole : command.part.bytes;
    return factor * static_cast<double>(cost_.run_part_ns(*rank_.graph, op.work, command.lane.kind(), part, whole));
  }

  const RankTimeline& rank_;
  const Truth truth_;
  const CostModel cost_;
  PathTimes sum_;
};

// The variance of a step over its square; none where a cause on the path has no uncertainty.
std::optional<double> relative_variance(const PathTimes& path, double step_s,
                                        const std::map<TimeCause, Uncertainty>& uncertainty) {
  if (path.other_s > 0) return std::nullopt;
  double variance = 0;
  for (int i = 0; i < kTimeCauseCount; ++i) {
    const auto cause = static_cast<TimeCause>(i);
    const auto at = static_cast<std::size_t>(i);
    variance += std::pow(path.deviation_s[at] / step_s, 2);
    const double modelled_s = path.s[at] - path.measured_s[at];
    if (modelled_s <= kNothing * path.s[at]) continue;
    const auto found = uncertainty.find(cause);
    if (found == uncertainty.end()) return std::nullopt;
    variance += std::pow(modelled_s / step_s * found->second.relative, 2);
  }
  return variance;
}

}  // namespace

PathTimes path_times(const RankTimeline& rank, const Steps& steps, const Scenario& scenario) {
  const Blame blame(rank);
  PathSum sum(rank, scenario);
  for (const Window& window : steps.windows)
    blame.walk_path(window.begin_ns, window.end_ns, [&](const Held& held) { sum.add(held); });
  PathTimes mean = sum.sum();
  const auto count = static_cast<double>(steps.window_steps());
  for (auto* sums : {&mean.s, &mean.measured_s, &mean.deviation_s})
    for (double& s : *sums) s /= count;
  mean.other_s /= count;
  return mean;
}

std::optional<Interval> step_interval(const Timeline& timeline, const Steps& steps, const Scenario& scenario,
                                      double step_s) {
  const auto& uncertainty = scenario.machine.uncertainty;
  if (uncertainty.empty() || steps.ends_ns.empty() || step_s <= 0) return std::nullopt;
  const double mean_s = seconds(steps.windows_ns()) / static_cast<double>(steps.window_steps());
  double largest = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    const auto variance = relative_variance(path_times(rank, steps, scenario), mean_s, uncertainty);
    if (!variance) return std::nullopt;
    largest = std::max(largest, *variance);
  }
  const double half = kDeviations * std::sqrt(largest) * step_s;
  return Interval{std::max(0.0, step_s - half), step_s + half};
}

}  // namespace tandem
