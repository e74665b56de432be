#include "core/model/halves.hpp"

#include <algorithm>
#include <utility>

#include "core/model/derive.hpp"

namespace tandem {

void derive_halves(const std::shared_ptr<const Module>& module, const DeriveOptions& options, Passes& passes) {
  if (module->opaque != nullptr) return;
  const ModuleFacts facts(module, options.input_gradients);
  if (!facts.anything_goes_backward()) return;
  HandedOver handed;
  passes.backward_inputs = derive_backward_inputs(facts, options, handed);
  passes.backward_weights = derive_backward_weights(facts, options, handed, /*accumulates=*/false);
  passes.backward_weights_accumulate = derive_backward_weights(facts, options, handed, true);
  passes.handed = std::move(handed.tensors);
}

bool goes_back_from_loss(const Pass& pass) {
  return std::any_of(pass.calls.begin(), pass.calls.end(), [](const PassCall& call) {
    return call.direction == Direction::Backward && call.call->what->primitive.is_own_loss();
  });
}

}  // namespace tandem
