// The schema of scenarios with the names that they may use: registered policies, families and optimizers, folders of
// profiles and models.
// A test gives its own, so that its messages do not change with every new policy.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct Schema;

struct KnownNames {
  std::shared_ptr<const Schema> scenario;  // with the keys of the families
  std::vector<std::string> workloads;
  std::vector<std::pair<std::string, std::array<double, 2>>> optimizers;   // name, betas by default
  std::vector<std::pair<std::string, std::vector<std::string>>> policies;  // name, options
  std::vector<std::string> profile_dirs, model_dirs;

  std::vector<std::string> of(const std::string& registry) const;  // "workloads", "optimizers" or "policies"
  const std::vector<std::string>* policy_options(const std::string& policy) const;
};

}  // namespace tandem
