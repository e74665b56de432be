// Which stages of a chain recompute what their backward needs, and from which kept inputs, for the least recomputing in
// a given memory: dynamic programming over a chain of stages of any costs and sizes, as in rotor (Herrmann, Beaumont et
// al., "Optimal checkpointing for heterogeneous chains", arXiv 1911.13214), restricted to what a step graph expresses:
// a stage is recomputed at most once, together with its segment, before the segment's last backward. Pure arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

// Bytes on the device, and what recomputing takes.
struct ChainStage {
  bool recomputable = false;
  std::int64_t forward_ns = 0;
  std::int64_t input_bytes = 0;   // the output of the stage before, if the backward reads it
  std::int64_t saved_bytes = 0;   // what else it reads
  std::int64_t output_bytes = 0;  // and as many of the output's gradient
  std::int64_t forward_workspace = 0, light_workspace = 0, backward_workspace = 0;  // light: saves nothing
};

struct Checkpoints {
  // By stage: the first of its segment, whose input is kept; kNone: all that it saves is kept.
  std::vector<std::int32_t> segment;
  std::int64_t recompute_ns = 0;
};

// At any moment the device has: of each stage that is before the one that runs and has yet to go backward, input and
// saved bytes if it keeps, the input if it begins a segment; of the running segment's backward, inputs and saved bytes
// of all its stages so far; the operands and workspace of what runs.
// The least recomputing for which that is never more than `budget_bytes`; of equals, the one that holds least when the
// forward ends. None if there is none. Exact for up to 600 stages of equal shape, and near to it beyond; O(stages^2)
// times the states that are kept of each.
std::optional<Checkpoints> optimal_checkpoints(const std::vector<ChainStage>& chain, std::int64_t budget_bytes);

// The smallest budget for which there is one.
std::int64_t least_budget(const std::vector<ChainStage>& chain);

}  // namespace tandem
