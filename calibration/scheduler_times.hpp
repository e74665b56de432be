// The scheduler's own time a command: what a run's submitting thread spends between events and submit().
// Must not know executors of any world.
#pragma once

#include "calibration/statistics.hpp"

namespace tandem {

// Runs a small network's schedule against the null executor, on_demand with a full device.
Summary time_decisions(bool quick);

}  // namespace tandem
