// Tries whether a scenario fits, by simulating it in a process of its own: a trial that fails takes nothing with it.
// Must not know what is tried, or why.
#pragma once

#include "core/run/advice.hpp"
#include "sim/simgrid_executor.hpp"

namespace tandem {

class SimulatedTrials {
 public:
  // Gives up a run after `most_commands_each` commands, and all that follow after `most_commands` together: so the time
  // that they take is bounded, and what they find does not depend on it.
  SimulatedTrials(Fidelity fidelity, std::int64_t most_commands_each, std::int64_t most_commands)
      : fidelity_(fidelity), each_(most_commands_each), left_(most_commands) {}

  TrialResult operator()(const Scenario& scenario);

 private:
  Fidelity fidelity_;
  std::int64_t each_, left_;
};

}  // namespace tandem
