#include "core/yaml/known_names.hpp"

#include "core/base/check.hpp"

namespace tandem {

std::vector<std::string> KnownNames::of(const std::string& registry) const {
  if (registry == "workloads") return workloads;
  std::vector<std::string> names;
  if (registry == "optimizers") {
    for (const auto& [name, betas] : optimizers) names.push_back(name);
    return names;
  }
  CHECK(registry == "policies", registry);
  for (const auto& [name, options] : policies) names.push_back(name);
  return names;
}

const std::vector<std::string>* KnownNames::policy_options(const std::string& policy) const {
  for (const auto& [name, options] : policies)
    if (name == policy) return &options;
  return nullptr;
}

}  // namespace tandem
