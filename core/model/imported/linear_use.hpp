// Finds in an imported program what a linear layer made of its weight: products forward and backward. Must not know
// what is done with them.
#pragma once

#include <optional>

#include "core/model/imported/program.hpp"

namespace tandem {

// y [rows, outputs] = x [rows, inputs] times the weight; places are of calls in their lists.
struct LinearUse {
  std::size_t forward = 0, weight_gradient = 0;
  std::optional<std::size_t> input_gradient;                           // none: the layer reads what has no gradient
  std::int32_t x = kNone, y = kNone;                                   // forward
  std::int32_t saved_x = kNone, gradient = kNone, x_gradient = kNone;  // backward: x again, those of y and x
  std::int64_t inputs = 0, outputs = 0;
};

std::optional<LinearUse> linear_use(const ImportedProgram& program, std::size_t weight);

}  // namespace tandem
