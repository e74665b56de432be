#include "core/run/policies.hpp"

#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {

const PolicyEntry* find_policy(std::string_view name) {
  const PolicyEntry* trains = find_training_policy(name);
  return trains != nullptr ? trains : find_generating_policy(name);
}

std::vector<const PolicyEntry*> all_policies() {
  std::vector<const PolicyEntry*> all = policies();
  all.insert(all.end(), generating_policies().begin(), generating_policies().end());
  return all;
}

std::vector<std::string> names_of(const std::vector<const PolicyEntry*>& policies) {
  std::vector<std::string> names;
  for (const PolicyEntry* entry : policies) names.emplace_back(entry->name);
  return names;
}

std::vector<std::string> policies_for(const Scenario& scenario) {
  if (!generates(scenario)) return names_of(policies());
  std::vector<std::string> names = names_of(generating_policies());
  names.insert(names.end(), {"on_demand", "resident"});
  return names;
}

}  // namespace tandem
