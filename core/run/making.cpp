#include "core/run/making.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/base/check.hpp"
#include "core/run/policies.hpp"
#include "core/run/product.hpp"
#include "core/scenario/build.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

// Large, so that no option is out of a range that follows from sizes, and with all that a policy may ask for.
constexpr const char* kStandInWorkload =
    "{family: gpt, layers: 96, hidden: 16384, heads: 128, vocabulary: 50257, sequence: 2048, batch: 1}";
constexpr const char* kStandInMachine =
    "{name: stand_in, tiers: {device: {capacity: 1TB, bandwidth: 1TB/s}, host_pinned: {capacity: 10TB, bandwidth: "
    "100GB/s}, disk: {capacity: 100TB}}, compute: {peak: {fp32: 10TFLOPS, fp16: 10TFLOPS, bf16: 10TFLOPS}}, copies: "
    "{h2d: {bandwidth: 10GB/s}, d2h: {bandwidth: 10GB/s}, disk_read: {bandwidth: 1GB/s}, disk_write: {bandwidth: "
    "1GB/s}}, cpu: {cores: 64, peak: 1TFLOPS, optimizer: {rate: 1Gparameters/s}}, loader: {bandwidth: 1GB/s}}";

constexpr const char *kMachine = "machine", *kWorkload = "workload", *kPolicy = "policy";

std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys;
  std::istringstream in(path);
  for (std::string key; std::getline(in, key, '.');) keys.push_back(key);
  return keys;
}

std::string section_of(const std::string& path) { return path.substr(0, path.find('.')); }

// Takes the key out of the tree; of a list the whole, since its items are no use without one another.
void take_out(Node& root, const std::string& path) {
  Node* node = &root;
  const std::vector<std::string> keys = keys_of(path);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Node* inner = node->find(keys[i]);
    if (inner == nullptr) return;
    if (i + 1 == keys.size() || inner->kind != NodeKind::Map)
      return void(std::erase_if(node->entries, [&](const Entry& entry) { return entry.key == keys[i]; }));
    node = inner;
  }
}

// A scenario in which nothing is wrong but what making it finds.
struct Sound {
  Values values;
  Scenario scenario;
  std::set<std::string> replaced;  // sections that are not what the file says
};

// Takes sections out, or puts stand-ins in, until there is nothing wrong. None if that does not help.
std::optional<Sound> made_sound(Node root, const std::set<std::string>& faulty, const KnownNames& names) {
  for (const std::string& path : faulty) take_out(root, path);
  Sound out;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Node tree = root;
    Findings findings;
    out.values = Values();
    Checker(names, out.values, findings).check(tree, scenario_schema(), "");
    out.scenario = build_scenario(out.values);
    check_scenario_rules(out.values, out.scenario, findings);
    if (findings.empty()) {
      apply_limits(out.scenario);
      return out;
    }
    for (const std::string& path : findings.paths()) {
      const std::string section = section_of(path);
      out.replaced.insert(section);
      std::erase_if(root.entries, [&](const Entry& entry) { return entry.key == section; });
      if (section == kMachine) root.at_key(section, root.at) = read_yaml_value(kStandInMachine, "stand-in", section);
      if (section == kWorkload) root.at_key(section, root.at) = read_yaml_value(kStandInWorkload, "stand-in", section);
    }
  }
  return std::nullopt;
}

// What the policy or the family refuses, "" for nothing.
std::string refusal_of(Sound& sound) {
  Scenario& scenario = sound.scenario;
  CHECK(find_workload(scenario.workload.family) != nullptr, "the checker knows the names", scenario.workload.family);
  const WorkloadEntry& family = *find_workload(scenario.workload.family);
  const bool has_workload = !sound.replaced.contains(kWorkload);
  try {
    if (has_workload) scenario.product.kept_bytes = bytes_kept_beside(scenario);
    GraphRequest request;
    if (!sound.replaced.contains(kPolicy)) {
      const auto policy = find_policy(scenario.policy.name)->make(scenario);
      if (has_workload) request = policy->traits().graph;
    }
    if (has_workload) family.make(scenario, request);
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
  const Node* workload = root.find(kWorkload);
  const Node* family = workload != nullptr ? workload->find("family") : nullptr;
  for (const Case& rule : scenario_schema().find(kWorkload)->schema.cases)
    if (family != nullptr && family->text == rule.value)
      return std::find(rule.taken.begin(), rule.taken.end(), key) != rule.taken.end();
  return true;
}

// Whether the message would be another one, or none, with some other value where the file's is not known.
bool depends_on_unknown(const std::string& message, const Node& root, const std::set<std::string>& faulty,
                        const std::set<std::string>& unknown, const KnownNames& names) {
  for (const std::string& path : unknown) {
    const std::vector<std::string> keys = keys_of(path);
    if (keys.size() != 2 || keys.front() != kWorkload || !is_taken(root, keys.back())) continue;
    for (const std::string& word : candidates(path)) {
      Node tree = root;
      for (const std::string& wrong : faulty) take_out(tree, wrong);
      Node* section = tree.find(keys.front());
      if (section == nullptr || section->kind != NodeKind::Map) return true;
      section->at_key(keys.back(), section->at) = read_yaml_value(word, "stand-in", path);
      std::optional<Sound> sound = made_sound(std::move(tree), {}, names);
      if (!sound || refusal_of(*sound) != message) return true;
    }
  }
  return false;
}

}  // namespace

void check_making(const Node& root, const KnownNames& names, Findings& findings) {
  std::set<std::string> faulty = findings.paths();
  const std::set<std::string> unknown = findings.spoiled();
  while (std::optional<Sound> sound = made_sound(root, faulty, names)) {
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
