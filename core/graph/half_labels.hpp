// How ops are told apart whose phase is the same: the two halves of a backward. Must not know what they compute.
#pragma once

#include <string_view>

namespace tandem {

// What their labels end with: gradients of a stage's inputs, and of its weights.
inline constexpr std::string_view kBackwardInputs = ".backward_inputs", kBackwardWeights = ".backward_weights";

}  // namespace tandem
