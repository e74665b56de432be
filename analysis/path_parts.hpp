// What the critical path of a training step consists of: how long it runs what, and waits for what. Must not know
// formats or worlds.
#pragma once

#include <string>
#include <vector>

#include "analysis/blame.hpp"
#include "analysis/steps.hpp"

namespace tandem {

struct PathPart {
  Cause cause = Cause::Dispatch;
  std::string what;    // a body's name, or the role of what is copied; "" between two commands
  double seconds = 0;  // a step
};

// The largest first; means over the steps that count and over ranks. They add up to the mean step.
std::vector<PathPart> path_parts(const Timeline& timeline, const Steps& steps);

}  // namespace tandem
