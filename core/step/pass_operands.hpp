// Gives a pass's operands their places among an op's reads and writes, in the orders that plan.hpp states.
#pragma once

#include "core/model/passes.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// `stage`: its ports, outputs and what backward reads are known.
Pass place_forward(Pass pass, const StageSpec& stage, bool writes_outputs);
Pass place_backward(Pass pass, const StageSpec& stage);

// The same of a half of a backward, whose lists of operands are filled.
Pass place_half(Pass pass, const StageSpec& stage, Gradients of, BackwardHalf& half);

}  // namespace tandem
