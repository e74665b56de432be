// Low-rank adapters (core/model/adapters.hpp) in an imported program: calls beside those that a linear layer made,
// forward and backward. Must not know which layers have them.
#pragma once

#include <memory>
#include <vector>

#include "core/model/adapters.hpp"
#include "core/model/imported/program.hpp"

namespace tandem {

// Whether the weight is a linear layer's: one product by it forward, one for its gradient, and at most one for the
// gradient of what it multiplies. [outputs, inputs] as torch.nn.Linear has it, or turned, as GPT-2's Conv1D.
bool adapts(const ImportedProgram& program, std::size_t weight);

// With adapters beside those weights, whose own come after all others, A before B, in the order of what they stand
// beside.
std::shared_ptr<const ImportedProgram> adapted(const ImportedProgram& program, const std::vector<bool>& weights,
                                               const AdapterShape& shape);

}  // namespace tandem
