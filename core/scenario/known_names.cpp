#include "core/scenario/known_names.hpp"

#include "core/scenario/load.hpp"
#include "core/scheduler/check.hpp"
#include "core/scheduler/policy.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {

std::vector<std::string> KnownNames::of(const std::string& registry) const {
  if (registry == "workloads") return workloads;
  CHECK(registry == "policies", registry);
  std::vector<std::string> names;
  for (const auto& [name, options] : policies) names.push_back(name);
  return names;
}

const std::vector<std::string>* KnownNames::policy_options(const std::string& policy) const {
  for (const auto& [name, options] : policies)
    if (name == policy) return &options;
  return nullptr;
}

KnownNames registered_names() {
  KnownNames names;
  for (const WorkloadEntry* entry : workloads()) names.workloads.emplace_back(entry->name);
  for (const PolicyEntry* entry : policies())
    names.policies.emplace_back(entry->name, std::vector<std::string>(entry->options.begin(), entry->options.end()));
  names.profile_dirs = profile_dirs();
  names.tries_making = true;
  return names;
}

}  // namespace tandem
