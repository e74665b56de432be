// Moments at which much must exist at once, so that what exceeds the device's memory must come back over PCIe: in each
// micro-batch, while the forward ends and the backward begins; in decoding, when a token is known and the
// next step begins. Must not know rates or schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/share_classes.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct CrowdedMoment {
  struct State {  // read by an optimizer op of the step, if that runs on the device
    std::int32_t in_class = kNone, slot = kNone;
    std::int64_t bytes = 0;
  };
  double live_bytes =
      0;  // exist at the moment, have been on the device, and will be read there; each value in one moment only
  double held_bytes = 0;      // of the device, by the op that runs at the moment, beside what it reads
  double made_bytes = 0;      // those of them that the device made and that nothing on the host reads
  std::vector<State> states;  // of the last moment of a step
  bool last_of_step = false;
  bool rewritten = true;  // the values are new in each step; false for weights that decoding steps read again and again
};

// One for each micro-batch that has a backward of each step that counts, and for each such decoding step. Values of at
// most `small_bytes` are left out.
std::vector<CrowdedMoment> crowded_moments(const Graph& graph, const Sides& sides, const SteadyState& steady,
                                           std::int64_t small_bytes);

// At least what any moment of a training step that counts has, with states and what its op holds; infinity where steps
// decode. Linear in ops, which crowded_moments is not: where this fits, no moment asks for anything.
double most_at_a_moment(const Graph& graph, const Sides& sides, const SteadyState& steady);

struct Capacity {
  double device_bytes = 0, host_bytes = 0;
};
// Of one rank of `ranks`, which share the host's memory.
Capacity capacity_of(const Scenario& scenario, std::int64_t ranks);

}  // namespace tandem
