// Which ops recur in every training step once a run is under way, and over how many steps. Initial values, evaluations
// and saves do not: step times, which bounds stand beside, do not contain them. Must not know rates or schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

struct SteadyState {
  // By op: part of a training (or decoding) step, and neither an evaluation, nor what is loaded for one, nor a save.
  std::vector<bool> in_step;
  std::int32_t first = 0;  // the first step that is like those after it
  std::int32_t steps = 0;  // from `first` to the last
  bool counts(const Graph& graph, OpId op) const {
    return in_step[static_cast<std::size_t>(op)] && graph.op(op).step >= first;
  }
};

// Without the first step, in which all starts; nor those that still read initial values which later steps replace (the
// second one under delayed update). Of shorter runs, the last step.
SteadyState steady_state(const Graph& graph);

}  // namespace tandem
