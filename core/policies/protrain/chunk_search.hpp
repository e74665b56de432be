// How a step's model states and activations are laid out for the least estimated step time in a device's memory: how
// many chunks (layers' tensors) stay on the device, through how many buffers the others' parameters pass, how many
// blocks swap what they save and how many recompute it (after ProTrain, arXiv 2406.08334: its automatic configuration).
// Must not know which policy asks.
#pragma once

#include <cstdint>
#include <optional>

#include "core/scenario/scenario.hpp"
#include "core/transforms/recompute/recompute.hpp"

namespace tandem {

// What the user has decided.
struct GivenChunks {
  std::optional<std::int64_t> persistent, buffers;
  std::optional<BlockActivations> activations;
};

struct ChunkLayout {
  std::int64_t persistent = 0, buffers = 1;
  std::optional<BlockActivations> activations;  // none: as the scenario's recompute says
  std::int64_t step_ns = 0;                     // estimated
  bool fits = false;                            // by the estimate
};

// Tries a bounded number of layouts. Of those that fit by the estimate of a step's memory (step_memory.hpp) the
// quickest, of equals the one that swaps least, then recomputes least, then keeps most chunks; where none fits, the one
// that takes least. A larger device has all layouts of a smaller one, and none with fewer buffers: its step is never
// longer.
ChunkLayout choose_chunks(const Scenario& scenario, const GivenChunks& given);

}  // namespace tandem
