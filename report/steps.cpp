#include "report/steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace tandem {
namespace {

struct StepEnd {
  std::int64_t end_ns = -1;
  bool complete = true;  // every op has a finished command
};

void collect_ends(const RankTimeline& rank, std::map<std::int32_t, StepEnd>& steps) {
  std::vector<bool> ran(static_cast<std::size_t>(rank.graph->op_count()), false);
  for (const TimedCommand& timed : rank.commands) {
    if (!timed.done || timed.command->op == kNone) continue;
    ran[static_cast<std::size_t>(timed.command->op)] = true;
    const std::int32_t step = rank.graph->op(timed.command->op).step;
    if (step == kNone || timed.command->lane.engine != Engine::Compute) continue;
    StepEnd& end = steps[step];
    end.end_ns = std::max(end.end_ns, timed.finished.ns);
  }
  for (OpId op = 0; op < rank.graph->op_count(); ++op) {
    const std::int32_t step = rank.graph->op(op).step;
    if (step != kNone && !ran[static_cast<std::size_t>(op)]) steps[step].complete = false;
  }
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

double Steps::mean_step_s(const Timeline& timeline) const {
  return ends_ns.empty() ? 0 : seconds(timeline.makespan.ns) / static_cast<double>(ends_ns.size());
}

Steps find_steps(const Timeline& timeline) {
  std::map<std::int32_t, StepEnd> found;
  for (const RankTimeline& rank : timeline.ranks) collect_ends(rank, found);
  Steps steps;
  for (const auto& [step, end] : found)
    if (end.complete && end.end_ns >= 0) steps.ends_ns.push_back(end.end_ns);
  for (std::size_t i = 1; i < steps.ends_ns.size(); ++i)
    steps.times_ns.push_back(steps.ends_ns[i] - steps.ends_ns[i - 1]);
  if (steps.ends_ns.empty()) {
    steps.window = {0, timeline.makespan.ns};
    return steps;
  }
  steps.head_ns = steps.ends_ns.front();
  steps.tail_ns = timeline.makespan.ns - steps.ends_ns.back();
  steps.window = {steps.times_ns.empty() ? 0 : steps.ends_ns.front(), steps.ends_ns.back()};
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

std::vector<double> losses(const Timeline& timeline) {
  std::map<std::int32_t, std::pair<double, int>> sums;
  for (const RankTimeline& rank : timeline.ranks) {
    for (const TimedCommand& timed : rank.commands) {
      if (!timed.done || timed.command->op == kNone) continue;
      const Op& op = rank.graph->op(timed.command->op);
      if (!op.has_result || op.phase != Phase::Forward || op.step == kNone) continue;
      auto& [sum, count] = sums[op.step];
      sum += as_double(timed.result);
      ++count;
    }
  }
  std::vector<double> means;
  for (const auto& [step, sum] : sums) means.push_back(sum.first / sum.second);
  return means;
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
