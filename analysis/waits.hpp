// Each stretch in which a lane stands idle, with the one command that it waits for: what arrows and "waits for" slices
// are drawn of. Must not know formats or worlds.
#pragma once

#include <vector>

#include "analysis/blame.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

struct Wait {
  std::int64_t begin_ns = 0, end_ns = 0;  // the lane's last finish, and the start of `next`
  CommandId next = kNoCommand;            // of the lane
  // The last to finish of what `next` could not start before, if it still ran inside the stretch. kNoCommand: all was
  // there, and the time went into handing the command over.
  CommandId by = kNoCommand;
  Cause cause = Cause::Dispatch;  // of `by`
};

// In order. The time before the lane's first command and after its last is no wait.
std::vector<Wait> waits_of(const RankTimeline& rank, LaneIndex lane, const Blame& blame);

}  // namespace tandem
