#include "sim/command_queues.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr std::size_t kFirstRingSize = 256;  // a power of two

}  // namespace

CommandQueues::CommandQueues() : ring_(kFirstRingSize) { last_in_lane_.fill(kNoCommand); }

void CommandQueues::make_room(CommandId id) {
  while (oldest_ < next_ && ring_[slot(oldest_)].finished) ++oldest_;
  if (oldest_ == next_) oldest_ = id;
  const auto span = static_cast<std::size_t>(id - oldest_) + 1;
  if (span > ring_.size()) {
    std::size_t size = ring_.size();
    while (size < span) size *= 2;
    std::vector<PendingCommand> larger(size);
    for (CommandId i = oldest_; i < next_; ++i) larger[static_cast<std::size_t>(i) & (size - 1)] = ring_[slot(i)];
    ring_ = std::move(larger);
  }
  // Ids that were left out count as finished.
  for (CommandId skipped = std::max(next_, oldest_); skipped < id; ++skipped) ring_[slot(skipped)].finished = true;
  next_ = id + 1;
}

void CommandQueues::add_waiter(PendingCommand& blocker, CommandId waiter) {
  std::int32_t index = free_waiter_;
  if (index >= 0) {
    free_waiter_ = waiters_[static_cast<std::size_t>(index)].next;
  } else {
    index = static_cast<std::int32_t>(waiters_.size());
    waiters_.emplace_back();
  }
  waiters_[static_cast<std::size_t>(index)] = {waiter, blocker.first_waiter};
  blocker.first_waiter = index;
}

bool CommandQueues::submit(const Command& command) {
  CHECK(command.id >= next_ && command.kind != CommandKind::Release, command.id, next_);
  make_room(command.id);
  PendingCommand& pending = ring_[slot(command.id)];
  pending = PendingCommand{};
  pending.id = command.id;
  pending.what = command.kind;
  pending.finished = false;
  pending.lane = command.lane.index;
  pending.op = command.op;
  pending.part = command.part;
  pending.match = command.match;
  for (CommandId wait : command.wait_for) {
    CHECK(wait >= 0 && wait < command.id, "a command waits for itself or a later one:", command.id, wait);
    if (finished(wait)) continue;
    add_waiter(at(wait), command.id);
    ++pending.blockers;
  }
  CommandId& last = last_in_lane_[command.lane.index.place()];
  if (last != kNoCommand && !finished(last)) {
    at(last).next_in_lane = command.id;
    ++pending.blockers;
  }
  last = command.id;
  return pending.blockers == 0;
}

void CommandQueues::unblock(CommandId id, std::vector<CommandId>& startable) {
  if (--at(id).blockers == 0) startable.push_back(id);
}

void CommandQueues::finish(CommandId id, std::vector<CommandId>& startable) {
  PendingCommand& done = at(id);
  CHECK(done.id == id && !done.finished && done.blockers == 0, id, done.id, done.finished, done.blockers);
  done.finished = true;
  const std::size_t first_new = startable.size();
  if (done.next_in_lane != kNoCommand) unblock(done.next_in_lane, startable);
  for (std::int32_t index = done.first_waiter; index >= 0;) {
    Waiter& waiter = waiters_[static_cast<std::size_t>(index)];
    unblock(waiter.id, startable);
    const std::int32_t next = waiter.next;
    waiter.next = free_waiter_;
    free_waiter_ = index;
    index = next;
  }
  done.first_waiter = -1;
  std::sort(startable.begin() + static_cast<std::ptrdiff_t>(first_new), startable.end());
}

}  // namespace tandem
