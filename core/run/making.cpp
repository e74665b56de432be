#include "core/run/making.hpp"

#include <algorithm>
#include <optional>

#include "core/base/check.hpp"
#include "core/run/policies.hpp"
#include "core/run/product.hpp"
#include "core/run/succession.hpp"
#include "core/scenario/sound_copy.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

// Of the policies that follow the first; what one refuses is told of its own section.
std::string refusal_of_switches(const Scenario& scenario) {
  Scenario from = scenario_under(scenario, scenario.policy);
  for (std::size_t i = 0; i < scenario.switches.size(); ++i) {
    const std::string section = "switches." + std::to_string(i) + ".";
    Scenario to = scenario_under(scenario, scenario.switches[i].policy);
    try {
      if (const std::string why = why_no_switch(from, to); !why.empty()) return section + "policy.name: " + why;
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      return text.rfind("policy.", 0) == 0 ? section + text : text;
    }
    from = std::move(to);
  }
  return "";
}

// What the policy or the family refuses, "" for nothing; and where that stands in a file of its own.
struct Refused {
  std::string message = {};
  std::optional<Finding> in_file = {};
};
Refused refusal_of(SoundCopy& sound) {
  if (sound.replaced.contains("generate")) return {};  // what is left would be trained
  Scenario& scenario = sound.scenario;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  CHECK(family != nullptr, scenario.workload.family);
  const bool has_workload = !sound.replaced.contains(kWorkloadSection);
  try {
    if (has_workload) scenario.product.kept_bytes = bytes_kept_beside(scenario);
    Rewrites rewrites;
    if (!sound.replaced.contains(kPolicySection)) {
      const PolicyEntry* entry = find_policy(scenario.policy.name);
      CHECK(entry != nullptr, scenario.policy.name);
      const auto policy = entry->make(scenario);
      if (has_workload) rewrites = policy->traits().rewrites;
    }
    if (has_workload) family->make(scenario, rewrites);
    if (has_workload && !sound.replaced.contains(kPolicySection)) return {refusal_of_switches(scenario)};
  } catch (const Finding& finding) {
    return {finding.what(), finding};
  } catch (const ConfigError& error) {
    return {error.what()};
  }
  return {};
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

// Of a list, where its first item is.
const Position* position_of(const Values& values, const std::string& path) {
  const Position* at = values.position(path);
  return at != nullptr ? at : values.position(path + ".0");
}

// The nearest of the keys that were written, the first of equally near ones; null: none was.
const std::string* nearest_of(const std::vector<std::string>& paths, const Values& values) {
  const std::string* nearest = nullptr;
  for (const std::string& path : paths)
    if (const Position* at = position_of(values, path); at != nullptr && at->distance != kDefaultDistance)
      if (nearest == nullptr || at->distance < position_of(values, *nearest)->distance) nearest = &path;
  return nearest;
}

// At the nearest key, with the places of the others; where none was written, at the section that would hold them, or
// else the file.
Finding finding_of(const std::string& key, const std::vector<std::string>& paths, const std::string& message,
                   const Values& values, const Node& root) {
  const std::string* nearest = nearest_of(paths, values);
  const Node* section = root.find(section_of(paths.front()));
  if (nearest == nullptr) return {section != nullptr ? section->at : root.at, key, printable(message)};
  const Position& place = *position_of(values, *nearest);
  std::string others;
  for (const std::string& other : paths)
    if (const Position* at = position_of(values, other); at != nullptr && other != *nearest)
      if (const std::string where = elsewhere(*at, place); !where.empty()) others += ", " + other + where;
  const std::size_t allowed = std::min(message.rfind("; "), message.size());
  return {place, *nearest, printable(message.substr(0, allowed) + others + message.substr(allowed))};
}

// What could stand at a path whose value is not known: the words of a choice, the ends of a range.
std::vector<std::string> candidates(const Schema& workload, const Case* rule, const std::string& key) {
  const Property* property = workload.find(key, rule);
  if (property == nullptr) return {};
  const Schema* schema = &property->schema;
  if (!schema->words.empty() || schema->type != ValueType::Integer) return schema->words;
  std::vector<std::string> out;
  for (const std::optional<Bound>& bound : {schema->least, schema->most})
    if (bound) out.push_back(bound->text);
  return out;
}

// Whether the message would be another one, or none, with some other value where the file's is not known.
bool depends_on_unknown(const std::string& message, const Node& root, const std::set<std::string>& faulty,
                        const std::set<std::string>& unknown, const KnownNames& names) {
  const Schema& workload = names.scenario->find(kWorkloadSection)->schema;
  const Node* given = root.find(kWorkloadSection);
  const Case* rule = given != nullptr ? case_of(*given, workload) : nullptr;
  for (const std::string& path : unknown) {
    const std::vector<std::string> keys = keys_of(path);
    if (keys.size() != 2 || keys.front() != kWorkloadSection) continue;
    // Another value of what the family does not take would not matter.
    if (rule != nullptr && std::find(rule->taken.begin(), rule->taken.end(), keys.back()) == rule->taken.end())
      continue;
    for (const std::string& word : candidates(workload, rule, keys.back())) {
      Node tree = root;
      for (const std::string& wrong : faulty) take_out(tree, wrong);
      Node* section = tree.find(keys.front());
      if (section == nullptr || section->kind != NodeKind::Map) return true;
      section->at_key(keys.back(), section->at) = read_yaml_value(word, "stand-in", path);
      std::optional<SoundCopy> sound = sound_copy(std::move(tree), {}, names);
      if (!sound || refusal_of(*sound).message != message) return true;
    }
  }
  return false;
}

}  // namespace

void check_making(const Node& root, const KnownNames& names, Findings& findings) {
  std::set<std::string> faulty = findings.paths();
  const std::set<std::string> unknown = findings.spoiled();
  while (std::optional<SoundCopy> sound = sound_copy(root, faulty, names)) {
    const auto [message, in_file] = refusal_of(*sound);
    if (in_file) return findings.add_aside(*in_file);
    const std::size_t colon = message.find(": ");
    if (colon == std::string::npos) return;
    const std::string key = message.substr(0, colon);
    const std::vector<std::string> paths = paths_of(key);
    const bool is_own = std::none_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return faulty.contains(path) || sound->replaced.contains(section_of(path));
    });
    if (!is_own) return;  // the file says something else there
    if (!depends_on_unknown(message, root, faulty, unknown, names))
      findings.add(finding_of(key, paths, message.substr(colon + 2), sound->values, root));
    faulty.insert(paths.begin(), paths.end());
  }
}

}  // namespace tandem
