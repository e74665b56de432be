#include "core/model/derive.hpp"

#include "core/model/opaque.hpp"

namespace tandem {

Passes derive(const std::shared_ptr<const Module>& module, const DeriveOptions& options) {
  if (module->opaque != nullptr) return module->opaque->derive(module, options);
  const ModuleFacts facts(module, options.input_gradients);
  const std::vector<bool> all(facts.calls(), true);
  Passes passes;
  passes.kept = facts.kept();
  passes.keeps_inputs = facts.keeps_inputs(), passes.keeps_outputs = facts.keeps_outputs();
  passes.backward_reads_weights = facts.backward_reads_weights();
  passes.backward_reads_frozen = facts.backward_reads_frozen();
  passes.forward = derive_forward(facts, options.where, all, /*keeps=*/true, /*writes_outputs=*/true);
  passes.forward_light = derive_forward(facts, options.where, all, false, true);
  passes.recompute = derive_forward(facts, options.where, facts.calls_that_kept_needs(), true, false);
  if (!facts.anything_goes_backward()) return passes;
  passes.backward = derive_backward(facts, options, /*accumulates=*/false);
  passes.backward_accumulate = derive_backward(facts, options, true);
  return passes;
}

}  // namespace tandem
