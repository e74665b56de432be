#include "core/scheduler/null_executor.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

NullExecutor::NullExecutor(Options options)
    : options_(std::move(options)), ranks_(static_cast<std::size_t>(options_.ranks)), random_(options_.seed) {}

void NullExecutor::submit(std::span<const Command> commands) {
  for (const Command& command : commands) {
    RankState& rank = ranks_[static_cast<std::size_t>(command.lane.rank)];
    CHECK(command.id == rank.first + static_cast<CommandId>(rank.states.size()), command.id);
    rank.states.push_back(command.kind == CommandKind::Release ? State::Finished : State::Pending);
    if (command.kind == CommandKind::Release) continue;
    auto& queue = options_.seed == 0 && options_.ranks == 1 ? in_order_ : rank.lanes[command.lane.index.place()];
    queue.push_back(
        {command.id, command.lane, command.match, command.wait_for, options_.result ? options_.result(command) : 0});
    ++in_flight_;
  }
}

bool NullExecutor::ready(const Pending& command) const {
  const RankState& rank = ranks_[static_cast<std::size_t>(command.lane.rank)];
  return std::all_of(command.wait_for.begin(), command.wait_for.end(),
                     [&](CommandId id) { return rank.state(id) != State::Pending; });
}

// What ranks do together starts when each has its command at the head of a lane.
bool NullExecutor::members_ready(const Pending& command) const {
  if (command.match.group == kNone) return true;
  const auto comes = [&](const RankState& rank) {
    for (const auto& lane : rank.lanes) {
      const auto at =
          std::find_if(lane.begin(), lane.end(), [&](const Pending& c) { return c.match == command.match; });
      if (at != lane.end()) return at == lane.begin() && ready(*at);
    }
    return true;  // a member that went first in this round
  };
  if (!options_.members) return std::all_of(ranks_.begin(), ranks_.end(), comes);
  const std::vector<Rank> members = options_.members(command.match.group);
  return std::all_of(members.begin(), members.end(),
                     [&](Rank rank) { return comes(ranks_[static_cast<std::size_t>(rank)]); });
}

void NullExecutor::finish_head(RankState& rank, std::size_t lane, EventBatch& batch) {
  const Pending command = std::move(rank.lanes[lane].front());
  rank.lanes[lane].pop_front();
  finish(rank, command, batch);
}

void NullExecutor::finish(RankState& rank, const Pending& command, EventBatch& batch) {
  const bool broken = std::any_of(command.wait_for.begin(), command.wait_for.end(),
                                  [&](CommandId id) { return rank.state(id) == State::Broken; });
  Event& event = batch.events.emplace_back();
  event.rank = command.lane.rank;
  event.command = command.id;
  CHECK(rank.state(command.id) == State::Pending, "a second event of command", command.id);
  const bool fails = command.id == options_.fail && command.lane.rank == 0;
  event.outcome = broken ? Outcome::Cancelled : fails ? Outcome::Failed : Outcome::Finished;
  if (fails && !broken) event.error = "injected failure";
  rank.settle(command.id, event.outcome == Outcome::Finished ? State::Finished : State::Broken);
  if (event.outcome == Outcome::Finished) event.result = command.result;
  event.started = {now_ns_};
  event.finished = {++now_ns_};
  --in_flight_;
}

// Finishes one command that may run now.
bool NullExecutor::step(EventBatch& batch) {
  if (!in_order_.empty()) {
    finish(ranks_.front(), in_order_.front(), batch);
    in_order_.pop_front();
    return true;
  }
  std::vector<std::pair<std::size_t, std::size_t>> ready_lanes;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
      const auto& queue = ranks_[r].lanes[lane];
      if (queue.empty() || !ready(queue.front()) || !members_ready(queue.front())) continue;
      if (options_.seed == 0) {
        finish_head(ranks_[r], lane, batch);
        return true;
      }
      ready_lanes.emplace_back(r, lane);
    }
  if (ready_lanes.empty()) return false;
  const auto [r, lane] = ready_lanes[random_() % ready_lanes.size()];
  finish_head(ranks_[r], lane, batch);
  return true;
}

EventBatch NullExecutor::wait(TimeNs deadline) {
  EventBatch batch;
  const std::size_t most = options_.seed == 0 ? options_.events_a_wait : 1 + random_() % options_.events_a_wait;
  while (batch.events.size() < most && in_flight_ > 0) CHECK(step(batch), "commands wait for each other in a circle");
  if (batch.events.empty() && deadline != kNever) now_ns_ = std::max(now_ns_, deadline.ns);
  batch.observed = {now_ns_};
  return batch;
}

}  // namespace tandem
