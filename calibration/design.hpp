// The networks that calibration trains to time their ops: sizes spread over what a machine without a GPU can train.
// Held-out ones are measured alike but not fitted, so that the fit's error on new sizes is known. Must not know times.
#pragma once

#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

struct Trial {
  Scenario scenario;
  bool held_out = false;
};

// `cores` sizes the workspaces of bodies, as it does in runs.
std::vector<Trial> designed_trials(bool quick, std::int32_t cores);
// The network of which lanes' slow-downs are measured: its ops take milliseconds, its states do not fit in caches.
Trial contention_trial(std::int32_t cores);

}  // namespace tandem
