// What calibration measures on a machine without a GPU: networks that it trains to time their ops, and kernels, of
// sizes that a CPU can do with. Held-out networks are measured alike but not fitted, so that the fit's error on new
// sizes is known. Must not know times.
#pragma once

#include <vector>

#include "calibration/kernel_times.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Sizes of kernels to be timed alone, each list in growing order.
struct KernelDesign {
  std::vector<GemmSize> gemms;
  std::vector<AttentionSize> attentions;
  std::vector<std::int64_t> additions;  // elements
};
KernelDesign designed_kernels(bool quick);

struct Trial {
  Scenario scenario;
  bool held_out = false;
  bool fp32_gradients = false;  // 16-bit gradients are widened for the update, as a GraphRequest may ask
  bool times_update = true;  // on the CPU; not where caches would hold the states, which those of runs do not let them
};

// `cores` sizes the workspaces of bodies, as it does in runs.
std::vector<Trial> designed_trials(bool quick, std::int32_t cores);
// The network of which lanes' slow-downs are measured: its ops take milliseconds, its states do not fit in caches.
Trial contention_trial(std::int32_t cores);

}  // namespace tandem
