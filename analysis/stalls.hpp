// Why lanes stand idle: each gap between two commands of a lane, split by what its end was waiting for.
// Must not know formats or worlds.
//
// A gap ends when a command starts. Walking back from there: the time during which the command's last-finishing
// dependency ran is that dependency's; before that, the time is charged to whatever the dependency in turn waited for,
// and so on to the start of the gap. Thus a copy that waits for the CPU optimizer does not take the optimizer's blame.
// Time in which nothing that matters ran is dispatch: launch, event and decision costs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/blame.hpp"
#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

using CauseNs = std::array<std::int64_t, kCauseCount>;

struct LaneUse {
  std::int64_t busy_ns = 0;  // inside the windows
  CauseNs idle_ns{};         // inside the windows, by cause
  std::int64_t bytes = 0;    // moved by copies over the whole run
  std::int64_t commands = 0;
};

// By place of the lane. Windows are in order and do not overlap.
std::array<LaneUse, kLaneCount> lane_uses(const RankTimeline& rank, const std::vector<Window>& windows);
// LaneUse::busy_ns of one lane, without asking what it waits for.
std::int64_t busy_ns(const RankTimeline& rank, LaneIndex lane, const std::vector<Window>& windows);

}  // namespace tandem
