#include "analysis/waits.hpp"

#include <algorithm>

namespace tandem {

std::vector<Wait> waits_of(const RankTimeline& rank, LaneIndex lane, const Blame& blame) {
  std::vector<Wait> waits;
  std::int64_t free_from = -1;
  for (const CommandId id : rank.lane(lane)) {
    const TimedCommand& timed = rank.at(id);
    if (free_from >= 0 && timed.started.ns > free_from) {
      Wait wait{free_from, timed.started.ns, id};
      const CommandId by = blame.held_by(id);
      if (by != kNoCommand && rank.at(by).finished.ns > free_from) {
        wait.by = by;
        wait.cause = cause_of(rank.at(by).command->lane.kind());
      }
      waits.push_back(wait);
    }
    free_from = std::max(free_from, timed.finished.ns);
  }
  return waits;
}

}  // namespace tandem
