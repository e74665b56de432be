#include "core/policies/common/estimate_executor.hpp"

#include <algorithm>
#include <functional>

#include "core/base/check.hpp"

namespace tandem {

std::int64_t EstimateExecutor::duration_ns(const Command& command) const {
  const Engine engine = command.lane.kind();
  if (command.kind == CommandKind::Copy) return estimate_.copy_ns(engine, command.part.bytes);
  const Op& op = graph_.op(command.op);
  if (engine == Engine::Collective) {
    std::int64_t bytes = 0;  // of all gradients of a bucket
    for (const Write& write : op.writes) bytes += graph_.value(write.value).bytes;
    return estimate_.collective_ns(bytes, ranks_);
  }
  const std::int64_t whole = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
  return estimate_.run_part_ns(graph_, op.work, engine, command.part.bytes == 0 ? whole : command.part.bytes, whole);
}

void EstimateExecutor::submit(std::span<const Command> commands) {
  for (const Command& command : commands) {
    CHECK(command.id == static_cast<CommandId>(done_.size()), command.id);
    const std::size_t lane = command.lane.index.place();
    done_.push_back(command.kind == CommandKind::Release);
    lane_of_.push_back(lane);
    if (command.kind == CommandKind::Release) continue;
    lanes_[lane].push_back(command);
    ++in_flight_;
  }
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) start(lane);
}

// The lane's next command, if nothing is in its way.
void EstimateExecutor::start(std::size_t lane) {
  if (busy_[lane] || lanes_[lane].empty()) return;
  const Command& next = lanes_[lane].front();
  if (!std::all_of(next.wait_for.begin(), next.wait_for.end(),
                   [&](CommandId id) { return done_[static_cast<std::size_t>(id)]; }))
    return;
  busy_[lane] = true;
  ends_.push({now_ns_ + duration_ns(next), next.id});
}

void EstimateExecutor::finish(CommandId id, std::vector<Event>& events) {
  const std::size_t lane = lane_of_[static_cast<std::size_t>(id)];
  done_[static_cast<std::size_t>(id)] = true;
  busy_[lane] = false;
  lanes_[lane].pop_front();
  --in_flight_;
  Event& event = events.emplace_back();
  event.command = id;
  event.started = event.finished = {now_ns_};
}

EventBatch EstimateExecutor::wait(TimeNs deadline) {
  EventBatch batch;
  CHECK(!ends_.empty() || in_flight_ == 0, "commands wait for each other in a circle");
  if (ends_.empty() || ends_.top().first > deadline.ns) {
    now_ns_ = std::max(now_ns_, deadline.ns);
  } else {
    now_ns_ = ends_.top().first;
    for (; !ends_.empty() && ends_.top().first == now_ns_; ends_.pop()) finish(ends_.top().second, batch.events);
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) start(lane);
  }
  batch.observed = {now_ns_};
  return batch;
}

}  // namespace tandem
