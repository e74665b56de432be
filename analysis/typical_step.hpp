// Steps as people look at them, from forward to forward, and one that stands for all: what a picture of a run opens on.
// (Step times go from update to update: steps.hpp.) Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/timeline.hpp"

namespace tandem {

// From the first command of a step's first forward to that of the next step's. The last: to the end of its last
// command.
struct StepStretch {
  std::int32_t step = kNone;
  std::int64_t begin_ns = 0, end_ns = 0;
};
// Of a rank's steps that ran a forward, in order.
std::vector<StepStretch> step_stretches(const RankTimeline& rank);

// Over all ranks. The third step of a run, when what the first two still fill is full; of shorter runs the last one
// that another follows, whose stretch repeats. Where no step ran a forward, the whole run, with kNone for a number.
StepStretch typical_step(const Timeline& timeline);

}  // namespace tandem
