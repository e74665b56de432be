#include "runtime/executors/standstill.hpp"

#include "core/machine/lanes.hpp"

namespace tandem {

std::string text_of(const Standstill& standstill) {
  std::string text;
  for (const LaneWait& wait : standstill.lanes) {
    text += "  lane " + name_of(wait.lane) + ": command " + std::to_string(wait.command) +
            (wait.what.empty() ? "" : ", " + wait.what + ",");
    if (wait.runs)
      text += waits_for_ranks(wait.lane.kind()) ? " waits for the other ranks" : " has begun and has not ended";
    else if (wait.waits_for == kNoCommand)
      text += " waits for its turn";
    else
      text += " waits for command " + std::to_string(wait.waits_for) +
              (wait.waited_for.empty() ? "" : ", " + wait.waited_for);
    text += "\n";
  }
  return text;
}

}  // namespace tandem
