#include "analysis/step_follower.hpp"

#include "core/base/check.hpp"

namespace tandem {
namespace {

// What saves a step's outcome comes after it.
bool belongs(const Op& op) { return op.step != kNone && op.phase != Phase::Save; }

}  // namespace

StepFollower::StepFollower(std::vector<const Graph*> graphs, Ended ended) : ended_(std::move(ended)) {
  CHECK(!graphs.empty(), "a run has a rank");
  for (const Graph* graph : graphs) ranks_.emplace_back().graph = graph;
}

// A step is appended as a whole, before any of its ops is issued.
void StepFollower::follow_graph(RankState& rank) {
  if (rank.graph == nullptr) return;
  for (; rank.seen < rank.graph->op_count(); ++rank.seen)
    if (const Op& op = rank.graph->op(rank.seen); belongs(op)) ++steps_[op.step].open_ops;
}

void StepFollower::append(std::span<const Command> commands) {
  for (RankState& rank : ranks_) follow_graph(rank);
  for (const Command& command : commands) {
    if (command.kind != CommandKind::Run) continue;
    RankState& rank = of(command.lane.rank);
    if (belongs(rank.graph->op(command.op)))
      rank.running[command.id] = {command.op, command.lane.kind(), command.part.bytes};
  }
}

void StepFollower::append(const EventBatch& batch) {
  for (const Event& event : batch.events) {
    RankState& rank = of(event.rank);
    const auto run = rank.running.find(event.command);
    if (run == rank.running.end()) continue;
    if (event.outcome == Outcome::Finished) take(rank, run->second, event);
    rank.running.erase(run);
  }
  for (; !steps_.empty() && steps_.begin()->second.open_ops == 0; steps_.erase(steps_.begin()))
    ended_(steps_.begin()->first, steps_.begin()->second.figures);
}

void StepFollower::take(RankState& rank, const Running& run, const Event& event) {
  const Op& op = rank.graph->op(run.op);
  Step& step = steps_.at(op.step);
  step.figures.take(op, run.engine, event.result, event.finished);
  const std::int64_t bytes = op.writes.empty() ? 0 : rank.graph->value(op.writes.front().value).bytes;
  if (run.bytes > 0 && run.bytes < bytes && (rank.parts[run.op] += run.bytes) < bytes) return;
  rank.parts.erase(run.op);
  --step.open_ops;
}

}  // namespace tandem
