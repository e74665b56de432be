// What one training step keeps on the device when nothing ever leaves, and the periods in which a value is kept without
// being used: the vitality analysis of G10 (Zhang et al., MICRO 2023, section 4.2). Steps repeat, so what a persistent
// tensor holds at the end of one is used next in the one that follows. Must not know where bytes are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {

// A value between two uses, by places in the step's order. `before` is the step's length or more where the next use is
// the following step's.
struct InactivePeriod {
  TensorId tensor = kNone;
  std::int64_t bytes = 0;
  bool persistent = false;
  std::int32_t after = 0, before = 0;
};

struct StepUse {
  std::vector<std::int64_t> run_ns;      // estimated, of each op
  std::vector<std::int64_t> live_bytes;  // on the device while it runs
  std::vector<InactivePeriod> periods;   // those that hold at least one whole op, of values of a page or more
};

// Ops of a step that work on device memory, in graph order: all but loads and saves. `first` is where to look from; ops
// of a step stand together.
std::vector<OpId> step_ops(const Graph& graph, std::int32_t step, OpId first);

StepUse use_of_step(const Graph& graph, const CostModel& estimate, const std::vector<OpId>& ops);

}  // namespace tandem
