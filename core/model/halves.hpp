// A backward in two passes: gradients of inputs, and later those of weights. Must not know schedules.
#pragma once

#include <memory>

#include "core/model/passes.hpp"

namespace tandem {

// Adds them to a module's passes, beside the whole backward. A half that has nothing to do has no calls; where passes
// are given, neither has. Of an input that is another module's weight, the first half makes the gradient.
void derive_halves(const std::shared_ptr<const Module>& module, const DeriveOptions& options, Passes& passes);

// The pass makes a loss's gradient that forward did not make.
bool goes_back_from_loss(const Pass& pass);

}  // namespace tandem
