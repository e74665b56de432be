#include "core/run/making.hpp"

#include <algorithm>
#include <optional>

#include "core/base/check.hpp"
#include "core/run/policies.hpp"
#include "core/run/product.hpp"
#include "core/scenario/sound_copy.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

// What the policy or the family refuses, "" for nothing.
std::string refusal_of(SoundCopy& sound) {
  Scenario& scenario = sound.scenario;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  CHECK(family != nullptr, scenario.workload.family);
  const bool has_workload = !sound.replaced.contains(kWorkloadSection);
  try {
    if (has_workload) scenario.product.kept_bytes = bytes_kept_beside(scenario);
    GraphRequest request;
    if (!sound.replaced.contains(kPolicySection)) {
      const PolicyEntry* entry = find_policy(scenario.policy.name);
      CHECK(entry != nullptr, scenario.policy.name);
      const auto policy = entry->make(scenario);
      if (has_workload) request = policy->traits().graph;
    }
    if (has_workload) family->make(scenario, request);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// "workload.batch, hidden" are workload.batch and workload.hidden.
std::vector<std::string> paths_of(const std::string& words) {
  std::vector<std::string> paths;
  const std::string section = section_of(words);
  std::size_t start = 0;
  for (std::size_t comma = words.find(", "); comma != std::string::npos; comma = words.find(", ", start)) {
    paths.push_back((start == 0 ? "" : section + ".") + words.substr(start, comma - start));
    start = comma + 2;
  }
  paths.push_back((start == 0 ? "" : section + ".") + words.substr(start));
  return paths;
}

// Where the nearest of the keys was written; where none was, the section that would hold it, or else the file.
Position place_of(const std::vector<std::string>& paths, const Values& values, const Node& root) {
  const Position* nearest = nullptr;
  for (const std::string& path : paths)
    if (const Position* at = values.position(path); at != nullptr && at->distance != kDefaultDistance)
      if (nearest == nullptr || at->distance < nearest->distance) nearest = at;
  if (nearest != nullptr) return *nearest;
  const Node* section = root.find(section_of(paths.front()));
  return section != nullptr ? section->at : root.at;
}

// What could stand at a path whose value is not known: the words of a choice, the ends of a range.
std::vector<std::string> candidates(const std::string& path) {
  const Schema* schema = &scenario_schema();
  for (const std::string& key : keys_of(path)) {
    const Property* property = schema->find(key);
    if (property == nullptr) return {};
    schema = &property->schema;
  }
  if (!schema->words.empty() || schema->type != ValueType::Integer) return schema->words;
  std::vector<std::string> out;
  for (const std::optional<Bound>& bound : {schema->least, schema->most})
    if (bound) out.push_back(bound->text);
  return out;
}

// Whether the family takes the key, so that another value of it could matter.
bool is_taken(const Node& root, const std::string& key) {
  const Node* workload = root.find(kWorkloadSection);
  const Node* family = workload != nullptr ? workload->find("family") : nullptr;
  for (const Case& rule : scenario_schema().find(kWorkloadSection)->schema.cases)
    if (family != nullptr && family->text == rule.value)
      return std::find(rule.taken.begin(), rule.taken.end(), key) != rule.taken.end();
  return true;
}

// Whether the message would be another one, or none, with some other value where the file's is not known.
bool depends_on_unknown(const std::string& message, const Node& root, const std::set<std::string>& faulty,
                        const std::set<std::string>& unknown, const KnownNames& names) {
  for (const std::string& path : unknown) {
    const std::vector<std::string> keys = keys_of(path);
    if (keys.size() != 2 || keys.front() != kWorkloadSection || !is_taken(root, keys.back())) continue;
    for (const std::string& word : candidates(path)) {
      Node tree = root;
      for (const std::string& wrong : faulty) take_out(tree, wrong);
      Node* section = tree.find(keys.front());
      if (section == nullptr || section->kind != NodeKind::Map) return true;
      section->at_key(keys.back(), section->at) = read_yaml_value(word, "stand-in", path);
      std::optional<SoundCopy> sound = sound_copy(std::move(tree), {}, names);
      if (!sound || refusal_of(*sound) != message) return true;
    }
  }
  return false;
}

}  // namespace

void check_making(const Node& root, const KnownNames& names, Findings& findings) {
  std::set<std::string> faulty = findings.paths();
  const std::set<std::string> unknown = findings.spoiled();
  while (std::optional<SoundCopy> sound = sound_copy(root, faulty, names)) {
    const std::string message = refusal_of(*sound);
    const std::size_t colon = message.find(": ");
    if (colon == std::string::npos) return;
    const std::string key = message.substr(0, colon);
    const std::vector<std::string> paths = paths_of(key);
    const bool is_own = std::none_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return faulty.contains(path) || sound->replaced.contains(section_of(path));
    });
    if (!is_own) return;  // the file says something else there
    if (!depends_on_unknown(message, root, faulty, unknown, names))
      findings.add(Finding(place_of(paths, sound->values, root), key, printable(message.substr(colon + 2))));
    faulty.insert(paths.begin(), paths.end());
  }
}

}  // namespace tandem
