#include "core/run/load.hpp"

#include <filesystem>

#include "core/optimizers/optimizer.hpp"
#include "core/run/making.hpp"
#include "core/run/policies.hpp"
#include "core/run/product.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scenario/family_schema.hpp"
#include "core/scenario/reader.hpp"
#include "core/step/placement.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

DeclaredKeys declared_keys() {
  DeclaredKeys declared{{}, parallel_keys(), generation_keys(), denoising_keys()};
  for (const WorkloadEntry* entry : workloads()) declared.families.push_back({entry->name, entry->keys});
  return declared;
}

// FILE#KEY is the map at KEY of FILE, unless there is a file of that name.
struct ScenarioText {
  std::string path, text;
};
ScenarioText scenario_text(const std::string& source) {
  const std::string whole = scenario_file(source);
  const std::size_t mark = whole.rfind('#');
  if (mark == std::string::npos || std::filesystem::exists(whole))
    return {whole, read_text_file(whole, scenario_names())};
  const std::string path = whole.substr(0, mark), key = whole.substr(mark + 1);
  const std::string text = read_text_file(path, scenario_names());
  const Node root = read_yaml(text, path);
  const Node* part = root.find(key);
  if (part == nullptr || part->kind != NodeKind::Map)
    refuse(root.at, printable(key), "is no map of this file", "its keys");
  return {path, text_of_part(text, root, key)};
}

}  // namespace

std::string scenario_schema_text() { return scenario_schema_text(declared_keys()); }

KnownNames registered_names() {
  static const auto kSchema = std::make_shared<const Schema>(scenario_schema(declared_keys()));
  KnownNames names;
  names.scenario = kSchema;
  for (const WorkloadEntry* entry : workloads()) names.workloads.emplace_back(entry->name);
  for (const OptimizerEntry* entry : optimizers()) names.optimizers.emplace_back(entry->name, entry->betas);
  for (const PolicyEntry* entry : all_policies()) {
    names.policies.emplace_back(entry->name, std::vector<std::string>(entry->options.begin(), entry->options.end()));
    names.policies.back().second.emplace_back(kCpuModules);
  }
  names.profile_dirs = profile_dirs();
  names.model_dirs = model_dirs();
  return names;
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                        const std::string& directory) {
  const KnownNames names = registered_names();
  Scenario scenario = read_scenario(text, name, overrides, directory, names,
                                    [&](const Node& root, Findings& findings) { check_making(root, names, findings); });
  scenario.product.kept_bytes = bytes_kept_beside(scenario);
  scenario.product.whose = run_of_whom(scenario);
  return scenario;
}

Scenario parse_unmade_scenario(const std::string& text, const std::string& name,
                               const std::vector<std::string>& overrides, const std::string& directory) {
  Scenario scenario = read_scenario(text, name, overrides, directory, registered_names());
  scenario.product.kept_bytes = bytes_kept_beside(scenario);
  return scenario;
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  const ScenarioText source = scenario_text(path);
  Scenario scenario = parse_scenario(source.text, source.path, overrides, folder_of(source.path));
  scenario.path = source.path;
  return scenario;
}

HardwareProfile parse_profile(const std::string& text, const std::string& name) {
  return read_profile(text, name, registered_names());
}

HardwareProfile load_profile(const std::string& path) { return parse_profile(read_text_file(path), path); }

CheckedFile check_file(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string found = scenario_file(path), text = read_text_file(found, scenario_names());
  Findings told_by_parsing;
  const Node root = read_tree(text, found, told_by_parsing);
  if (root.find("tiers") != nullptr || root.find("derive_from") != nullptr) {
    if (!overrides.empty()) refuse(root.at, "--set", "has no meaning for a profile", "no --set");
    parse_profile(text, found);
    return {CheckedFile::Kind::Profile, {}};
  }
  return {CheckedFile::Kind::Scenario, parse_scenario(text, found, overrides, folder_of(found)).warnings};
}

}  // namespace tandem
