#include "analysis/typical_step.hpp"

#include <algorithm>
#include <map>

namespace tandem {
namespace {

struct Found {
  std::int64_t forward_ns = -1, end_ns = 0;  // -1: none
};

void find(const RankTimeline& rank, std::map<std::int32_t, Found>& steps) {
  for (const TimedCommand& timed : rank.commands) {
    if (!timed.done || timed.command->op == kNone) continue;
    const Op& op = rank.graph->op(timed.command->op);
    if (op.step == kNone || op.phase == Phase::Evaluate || op.phase == Phase::Save) continue;
    Found& of = steps[op.step];
    of.end_ns = std::max(of.end_ns, timed.finished.ns);
    if (op.phase == Phase::Forward && (of.forward_ns < 0 || timed.started.ns < of.forward_ns))
      of.forward_ns = timed.started.ns;
  }
}

std::vector<StepStretch> stretches_of(const std::map<std::int32_t, Found>& steps) {
  std::vector<StepStretch> stretches;
  for (const auto& [step, found] : steps) {
    if (found.forward_ns < 0) continue;
    if (!stretches.empty()) stretches.back().end_ns = found.forward_ns;
    stretches.push_back({step, found.forward_ns, found.end_ns});
  }
  return stretches;
}

}  // namespace

std::vector<StepStretch> step_stretches(const RankTimeline& rank) {
  std::map<std::int32_t, Found> steps;
  find(rank, steps);
  return stretches_of(steps);
}

StepStretch typical_step(const Timeline& timeline) {
  std::map<std::int32_t, Found> steps;
  for (const RankTimeline& rank : timeline.ranks) find(rank, steps);
  const std::vector<StepStretch> stretches = stretches_of(steps);
  if (stretches.empty()) return {kNone, 0, timeline.makespan.ns};
  constexpr std::size_t kSteady = 2;
  const std::size_t last_followed = stretches.size() > 1 ? stretches.size() - 2 : 0;
  return stretches[std::min(kSteady, last_followed)];
}

}  // namespace tandem
