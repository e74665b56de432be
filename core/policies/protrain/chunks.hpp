// What a training step takes whose model states are kept by the chunk, a layer's tensors (after ProTrain, arXiv
// 2406.08334, its cost model). Pure arithmetic on estimated durations; must not know where the numbers come from.
#pragma once

#include <cstdint>
#include <vector>

#include "core/policies/common/layers.hpp"

namespace tandem {

struct ChunkPlan {
  std::size_t persistent = 0;  // of the first chunks: on the device, and updated there
  std::size_t buffers = 0;     // through which the parameters of the others pass; at least 1 where there are others
};

// What of a step is the same under every plan.
struct StepShape {
  std::int64_t passes = 1;    // micro-batches
  bool updates_wait = false;  // for the norm of all gradients
};

// From one step to the next, in ns, as it settles over many. Two times carry over: when the backward has passed the
// chunks that are not persistent, and when the CPU has updated the last of them, the first in order. What lies between:
// - computing, and the waits for parameters and for what was swapped. A parameter's copy starts when it is updated and
//   its buffer was last used; the buffers' last ones need none on the way back. What is swapped has left when a
//   forward ends, since its room is wanted.
// - gradients leave as their backward ends, and the CPU takes them as they arrive. The device's own updates follow the
//   backward of the persistent chunks.
// Layers that recompute, or whose activations are swapped, have the times of it; the others have 0.
// More buffers never take longer.
std::int64_t chunked_step_ns(const std::vector<LayerTimes>& layers, const StepShape& shape, const ChunkPlan& plan);

}  // namespace tandem
