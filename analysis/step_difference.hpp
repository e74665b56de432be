// Why two runs of one scenario take different times: the chain of commands that the measured steps went by, each with
// the time that it takes in the prediction. Must not know formats or worlds.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"

namespace tandem {

struct CommandDifference {
  std::string name;  // without its step: "block3.forward"
  Cause cause = Cause::Compute;
  double predicted_s = 0, measured_s = 0;  // a step, on the measured chain
};

// All in seconds a step, predicted minus measured, of the runs' first ranks.
struct StepDifference {
  double step_s = 0;  // of the mean step
  // What the commands of the measured chain add by taking longer or less; Dispatch: gaps before them.
  std::array<double, kCauseCount> by_cause_s{};
  // The rest: where the chains differ, other commands decide how long a step takes.
  double other_order_s = 0;
  double unmatched_s = 0;                  // part of the measured chain that only the measured run has
  std::vector<CommandDifference> largest;  // the commands that contribute most, by size of their difference
};

// To first order: the schedule stays, durations change. Commands are the same if they do the same to the same bytes for
// the same time.
StepDifference step_difference(const Analysis& predicted, const Analysis& measured);
// A line a cause, and the commands that contribute most.
std::string difference_text(const StepDifference& difference);
nlohmann::ordered_json to_json(const StepDifference& difference);

}  // namespace tandem
