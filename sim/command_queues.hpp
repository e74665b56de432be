// The unfinished commands of one rank: FIFO lanes and wait_for. Says which commands may start.
// Must not know time or SimGrid.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/scheduler/seam.hpp"

namespace tandem {

// What the simulator keeps of a command until its event.
struct PendingCommand {
  CommandId id = kNoCommand;
  CommandKind what = CommandKind::Run;
  LaneIndex lane;
  bool finished = true;
  OpId op = kNone;
  Part part;
  Match match;
  bool pageable = false;     // copies host memory that is not pinned
  bool recorded = false;     // its kernels are started as a whole
  double dispatched_ns = 0;  // when the submitting thread has handed it to its lane
  double launched_ns = 0;    // and, on the compute lane, when it has launched the op's kernels
  double started_ns = 0;
  Engine kind() const { return lane.kind(); }
  // Bookkeeping of CommandQueues.
  std::int32_t blockers = 0;       // unfinished waits, the lane's earlier command among them
  std::int32_t first_waiter = -1;  // head of a list in the pool of waiters
  CommandId next_in_lane = kNoCommand;
};

// Memory is bounded by the span of ids between the oldest unfinished command and the newest.
class CommandQueues {
 public:
  CommandQueues();

  // Adds a command that has a lane; ids grow, and those left out count as finished. Returns true if it may start at
  // once.
  bool submit(const Command& command);
  // Marks a started command as finished and appends to `startable` the ids that this sets free, in ascending order.
  void finish(CommandId id, std::vector<CommandId>& startable);

  // Of an unfinished command. The reference holds until the next submit.
  PendingCommand& at(CommandId id) { return ring_[slot(id)]; }
  bool finished(CommandId id) const { return id < oldest_ || ring_[slot(id)].finished; }

 private:
  struct Waiter {
    CommandId id;
    std::int32_t next;
  };

  std::size_t slot(CommandId id) const { return static_cast<std::size_t>(id) & (ring_.size() - 1); }
  void make_room(CommandId id);
  void add_waiter(PendingCommand& blocker, CommandId waiter);
  void unblock(CommandId id, std::vector<CommandId>& startable);

  std::vector<PendingCommand> ring_;  // by id modulo its size, a power of two
  CommandId oldest_ = 0, next_ = 0;   // ids in [oldest_, next_) are in the ring
  std::vector<Waiter> waiters_;
  std::int32_t free_waiter_ = -1;
  std::array<CommandId, kLaneCount> last_in_lane_;
};

}  // namespace tandem
