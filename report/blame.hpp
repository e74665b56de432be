// What held a command up: its dependencies, its lane's order, or the event that made the scheduler issue it. Walking
// back from command to command gives the chain that a stretch of time went by. Must not know formats or worlds.
#pragma once

#include <algorithm>
#include <vector>

#include "report/stalls.hpp"

namespace tandem {

class Blame {
 public:
  // The rank must outlive this object.
  explicit Blame(const RankTimeline& rank);

  // The last to finish of all that `id` could not start before. kNoCommand: nothing held it up.
  CommandId held_by(CommandId id) const;

  // Splits [begin, end), at or before whose end `waiting` was held up, from the end to the beginning, and calls
  // visit(command, cause, ns) for each piece: `command` ran then, or, where the cause is Dispatch (of a collective:
  // Collective), it was still to start and nothing that it waited for ran.
  template <typename Visit>
  void walk(std::int64_t begin, std::int64_t end, CommandId waiting, Visit&& visit) const {
    std::int64_t to = end;
    for (CommandId at = waiting; to > begin;) {
      const CommandId before = held_by(at);
      const Cause between = rank_.at(at).command->lane.engine == Engine::Collective && at != waiting
                                ? Cause::Collective  // waits for the other members
                                : Cause::Dispatch;
      const std::int64_t until = before == kNoCommand ? begin : std::clamp(rank_.at(before).finished.ns, begin, to);
      visit(at, between, to - until);
      to = until;
      if (to <= begin) return;
      const std::int64_t from = std::clamp(rank_.at(before).started.ns, begin, to);
      visit(before, cause_of(rank_.at(before).command->lane.engine), to - from);
      to = from;
      at = before;
    }
  }

 private:
  const RankTimeline& rank_;
  std::vector<CommandId> before_;  // the lane's previous command
};

}  // namespace tandem
