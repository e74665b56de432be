#include "core/run/load.hpp"

#include <filesystem>

#include "core/run/policies.hpp"
#include "core/run/product.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scenario/reader.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

// Makes the policy and the workload once, so that what they refuse is found when the file is read.
void try_making(Scenario& scenario) {
  scenario.product.kept_bytes = bytes_kept_beside(scenario);
  const auto policy = find_policy(scenario.policy.name)->make(scenario);
  find_workload(scenario.workload.family)->make(scenario, policy->traits().graph);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

KnownNames registered_names() {
  KnownNames names;
  for (const WorkloadEntry* entry : workloads()) names.workloads.emplace_back(entry->name);
  for (const PolicyEntry* entry : policies())
    names.policies.emplace_back(entry->name, std::vector<std::string>(entry->options.begin(), entry->options.end()));
  names.profile_dirs = profile_dirs();
  return names;
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                        const std::string& directory) {
  return read_scenario(text, name, overrides, directory, registered_names(), try_making);
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  Scenario scenario = parse_scenario(read_text_file(path), path, overrides, folder_of(path));
  scenario.path = path;
  return scenario;
}

HardwareProfile parse_profile(const std::string& text, const std::string& name) {
  return read_profile(text, name, registered_names());
}

HardwareProfile load_profile(const std::string& path) { return parse_profile(read_text_file(path), path); }

FileKind check_file(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string text = read_text_file(path);
  const Node root = read_yaml(text, path);
  if (root.find("tiers") != nullptr || root.find("derive_from") != nullptr) {
    if (!overrides.empty()) refuse(root.at, "--set", "has no meaning for a profile", "no --set");
    parse_profile(text, path);
    return FileKind::Profile;
  }
  parse_scenario(text, path, overrides, folder_of(path));
  return FileKind::Scenario;
}

}  // namespace tandem
