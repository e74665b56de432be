#include "analysis/steps.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace tandem {
namespace {

// Steps of which some op has no finished command. Evaluations are no part of a step.
std::set<std::int32_t> incomplete_steps(const Timeline& timeline) {
  std::set<std::int32_t> incomplete;
  for (const RankTimeline& rank : timeline.ranks) {
    std::vector<bool> ran(static_cast<std::size_t>(rank.graph->op_count()), false);
    for (const TimedCommand& timed : rank.commands)
      if (timed.done && timed.command->op != kNone) ran[static_cast<std::size_t>(timed.command->op)] = true;
    for (OpId id = 0; id < rank.graph->op_count(); ++id) {
      const Op& op = rank.graph->op(id);
      if (op.step != kNone && op.phase != Phase::Evaluate && !ran[static_cast<std::size_t>(id)])
        incomplete.insert(op.step);
    }
  }
  return incomplete;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

bool Steps::counts(std::int64_t ended_ns) const {
  return std::any_of(windows.begin(), windows.end(),
                     [&](const Window& window) { return window.begin_ns < ended_ns && ended_ns <= window.end_ns; });
}

std::int64_t Steps::windows_ns() const {
  std::int64_t length = 0;
  for (const Window& window : windows) length += window.length_ns();
  return length;
}

Steps find_steps(const Timeline& timeline) {
  const std::set<std::int32_t> incomplete = incomplete_steps(timeline);
  Steps steps;
  std::int64_t begin_ns = 0;  // of the step in hand
  for (const auto& [step, figures] : step_figures(timeline)) {
    if (figures.end_ns() < 0 || incomplete.contains(step)) continue;
    if (!steps.ends_ns.empty()) {
      steps.times_ns.push_back(figures.end_ns() - begin_ns);
      if (!steps.windows.empty() && steps.windows.back().end_ns == begin_ns)
        steps.windows.back().end_ns = figures.end_ns();
      else
        steps.windows.push_back({begin_ns, figures.end_ns()});
    }
    steps.ends_ns.push_back(figures.end_ns());
    begin_ns = std::max(figures.end_ns(), figures.evaluation_end_ns());
  }
  if (steps.ends_ns.empty()) {
    steps.windows = {{0, timeline.makespan.ns}};
    return steps;
  }
  steps.head_ns = steps.ends_ns.front();
  steps.tail_ns = timeline.makespan.ns - steps.ends_ns.back();
  if (steps.times_ns.empty()) steps.windows = {{0, steps.ends_ns.back()}};
  return steps;
}

std::int64_t save_ns(const Timeline& timeline) {
  std::int64_t sum = 0;
  for (const RankTimeline& rank : timeline.ranks)
    for (CommandId id : rank.lane(Engine::Loader)) {
      const TimedCommand& timed = rank.at(id);
      if (rank.graph->op(timed.command->op).phase == Phase::Save) sum += timed.finished.ns - timed.started.ns;
    }
  return sum;
}

std::map<std::int32_t, StepFigures> step_figures(const Timeline& timeline) {
  std::map<std::int32_t, StepFigures> figures;
  for (const RankTimeline& rank : timeline.ranks) {
    for (const TimedCommand& timed : rank.commands) {
      if (!timed.done || timed.command->op == kNone) continue;
      const Op& op = rank.graph->op(timed.command->op);
      if (op.step != kNone) figures[op.step].take(op, timed.command->lane.kind(), timed.result, timed.finished);
    }
  }
  return figures;
}

double model_flops_per_step(const Timeline& timeline) {
  double flops = 0;
  std::int32_t last_step = -1;
  for (const RankTimeline& rank : timeline.ranks) {
    std::vector<double> by_work(static_cast<std::size_t>(rank.graph->work_count()), -1);
    for (OpId id = 0; id < rank.graph->op_count(); ++id) {
      const Op& op = rank.graph->op(id);
      last_step = std::max(last_step, op.step);
      if (op.phase != Phase::Forward && op.phase != Phase::Backward) continue;
      double& of_work = by_work[static_cast<std::size_t>(op.work)];
      if (of_work < 0) of_work = static_cast<double>(rank.graph->work(op.work).flops());
      flops += of_work;
    }
  }
  return last_step < 0 ? 0 : flops / (last_step + 1);
}

Spread spread_of(std::vector<double> values, double fallback) {
  if (values.empty()) return {fallback, fallback, fallback};
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9)};
}

}  // namespace tandem
