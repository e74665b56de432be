// The names that a scenario may use beyond its schema: registered policies and families, folders of profiles.
// A test gives its own, so that its messages do not change with every new policy.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct KnownNames {
  std::vector<std::string> workloads;
  std::vector<std::pair<std::string, std::vector<std::string>>> policies;  // name, options
  std::vector<std::string> profile_dirs;

  std::vector<std::string> of(const std::string& registry) const;  // "workloads" or "policies"
  const std::vector<std::string>* policy_options(const std::string& policy) const;
};

}  // namespace tandem
