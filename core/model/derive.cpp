#include "core/model/derive.hpp"

#include "core/model/opaque.hpp"
#include "core/model/ring_round.hpp"

namespace tandem {
namespace {

// What its backward reads of the last round is saved there.
void save_nothing(const ModuleFacts& facts, const RunsOn& where, Passes& passes) {
  const std::vector<bool> none(facts.calls(), false);
  passes.kept.clear();
  passes.forward = passes.forward_light;
  passes.recompute = derive_forward(facts, where, none, /*keeps=*/false, /*writes_outputs=*/false);
}

}  // namespace

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
  if (is_round_before_last(*module)) save_nothing(facts, options.where, passes);
  if (!facts.anything_goes_backward()) return passes;
  passes.backward = derive_backward(facts, options, /*accumulates=*/false);
  passes.backward_accumulate = derive_backward(facts, options, true);
  return passes;
}

}  // namespace tandem
