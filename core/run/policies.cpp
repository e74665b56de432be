#include "core/run/policies.hpp"

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

}  // namespace tandem
