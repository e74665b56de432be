// What a run waits for, lane by lane, for people: asked for by a watchdog where nothing has finished for long. Must not
// know what commands do.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/scheduler/seam.hpp"

namespace tandem {

// The first command of a lane that has not ended.
struct LaneWait {
  LaneIndex lane;
  CommandId command = kNoCommand;
  std::string what;                  // it does
  bool runs = false;                 // it has begun, or is a device's; else it waits
  CommandId waits_for = kNoCommand;  // kNoCommand: for its turn
  std::string waited_for;            // what that does, and in which lane
};

struct Standstill {
  std::chrono::nanoseconds quiet{};      // since the last command ended, or the first was added
  std::chrono::nanoseconds allowance{};  // that what runs may take beyond what a watchdog allows
  std::chrono::nanoseconds saving{};     // of that, of a save that runs: an interrupt waits for it
  std::vector<LaneWait> lanes;
};

// A line for each lane, each with an end of line.
std::string text_of(const Standstill& standstill);

}  // namespace tandem
