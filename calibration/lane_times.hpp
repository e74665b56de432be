// Copies by size, hand-over costs of the executor, and how much lanes slow each other down.
// Must not know how the profile states them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "calibration/statistics.hpp"
#include "calibration/workbench.hpp"

namespace tandem {

struct CopyTime {
  std::int64_t bytes = 0;
  Summary ns;
};

struct CopyTimes {
  std::vector<CopyTime> h2d, d2h;                    // alone, by size
  std::vector<CopyTime> pageable_h2d, pageable_d2h;  // where the bench has pageable memory
  double both_bytes_per_s = 0;                       // both directions at once, together
};
// What copies are timed with.
struct CopyDesign {
  std::int64_t scratch_bytes =
      0;  // of the bench, pinned: cycled through, so that copies do not find their bytes in a cache
  std::int64_t most_bytes = 0;    // the largest copy
  std::int64_t bucket_bytes = 0;  // about a bucket's: copies beside others
  // Which quantile of a slow-down's rounds is the machine's own. Where a few cores run everything, the quieter rounds':
  // other programs and unlucky placements of threads only ever slow lanes down, and do so in many rounds. The median
  // where the rates alone are medians, too.
  double own_quantile = 0.25;
  // So many times as long as a turn with kernels took, beside others or alone, the device rests: one that computes
  // without a pause lowers its clock to keep to its power limit, which would look like what others took from it.
  double rest = 0;
  std::int64_t pageable_bytes = 0;  // of the bench, not pinned; 0: such copies are not timed
};
CopyTimes time_copies(Workbench& bench, const CopyDesign& design);

struct HandOver {
  Summary submit_ns;  // of the submitting thread, per command
  Summary start_ns;   // from a command's submission to its start on a lane that slept
  Summary wake_ns;    // from the end of the command that another lane's head waits for to that head's start
  Summary seen_ns;    // from a command's end to wait()'s return
};
HandOver time_hand_over(Workbench& bench, bool quick);

// The duration of `lane`'s commands while `others` are busy, over their duration alone.
struct SlowDown {
  Engine lane;
  std::vector<Engine> others;
  Summary factor;         // over rounds
  double own_factor = 1;  // CopyDesign::own_quantile of the rounds
};
std::vector<SlowDown> time_slow_downs(Workbench& bench, const CopyDesign& design, bool quick);

}  // namespace tandem
