#include "runtime/executors/standstill.hpp"

namespace tandem {

std::string text_of(const Standstill& standstill) {
  std::string text;
  for (const LaneWait& lane : standstill.lanes) {
    text += "  lane " + std::string(name_of(lane.engine)) + ": command " + std::to_string(lane.command) +
            (lane.what.empty() ? "" : ", " + lane.what + ",");
    if (lane.runs)
      text += lane.engine == Engine::Collective ? " waits for the other ranks" : " has begun and has not ended";
    else if (lane.waits_for == kNoCommand)
      text += " waits for its turn";
    else
      text += " waits for command " + std::to_string(lane.waits_for) +
              (lane.waited_for.empty() ? "" : ", " + lane.waited_for);
    text += "\n";
  }
  return text;
}

}  // namespace tandem
