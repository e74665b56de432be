// The passes of a module one by one; derive() of passes.hpp has all of them.
#pragma once

#include <optional>
#include <vector>

#include "core/model/module_facts.hpp"
#include "core/model/passes.hpp"

namespace tandem {

// `calls`: those that are made. `keeps`: what backward reads. `writes_outputs`: the module's.
Pass derive_forward(const ModuleFacts& facts, const RunsOn& where, const std::vector<bool>& calls, bool keeps,
                    bool writes_outputs);
// Calls in reverse. Gradients of a value with several readers are added in reverse order of the readers.
Pass derive_backward(const ModuleFacts& facts, const DeriveOptions& options, bool accumulates);

// What the half of a backward that makes gradients of inputs leaves for the other one.
struct HandedOver {
  std::vector<Kept> tensors;
  std::vector<std::optional<Operand>> by_call;  // where the gradient of the call's output lies; none: nobody reads it
};
Pass derive_backward_inputs(const ModuleFacts& facts, const DeriveOptions& options, HandedOver& handed);
Pass derive_backward_weights(const ModuleFacts& facts, const DeriveOptions& options, HandedOver& handed,
                             bool accumulates);

}  // namespace tandem
