// Options that bind tensors to tiers, as eviction keeps to them and as a refusal names them.
#include <string>

#include "core/scheduler/scheduler.hpp"

namespace tandem {

// The narrowest of the role's; null: it may be anywhere.
const Binding* Scheduler::binding(Role role) const {
  const Binding* narrowest = nullptr;
  for (const Binding& binding : traits_.bindings)
    if (binding.role == role && (narrowest == nullptr || binding.lowest < narrowest->lowest)) narrowest = &binding;
  return narrowest;
}

// What keeps a full tier full, and would help: the middle of a message.
std::string Scheduler::bindings_text(Tier tier) const {
  std::string options;
  for (const Binding& binding : traits_.bindings) {
    if (binding.lowest != tier || binding.option.empty()) continue;
    const std::string option = "policy." + binding.option;
    if (options.find(option) == std::string::npos) options += (options.empty() ? "" : ", ") + option;
  }
  if (options.empty()) return "";
  return "; what may not leave it: " + options + " (auto, or a lower tier, lets it leave)";
}

}  // namespace tandem
