#include "core/scenario/reader.hpp"

#include <algorithm>
#include <filesystem>

#include "core/scenario/build.hpp"
#include "core/scenario/machine_files.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/overrides.hpp"

namespace tandem {
namespace {

void set_text(Node& map, const std::string& key, const std::string& text) {
  Node& node = map.at_key(key, map.at);
  node.kind = NodeKind::Scalar;
  node.text = text;
}

// --set, with those that change a machine given by name applied to what the name stands for.
void apply_overrides(Node& root, const std::vector<std::string>& arguments, const std::string& directory,
                     const KnownNames& names) {
  std::vector<Override> inside_machine;
  for (const std::string& argument : arguments) {
    Override change = read_override(argument);
    if (change.keys.size() > 1 && change.keys.front() == "machine" && root.find("machine") != nullptr) {
      inside_machine.push_back(std::move(change));
    } else {
      apply(change, root);
    }
  }
  Node* machine = root.find("machine");
  if (machine == nullptr) return;
  resolve_machine(*machine, directory, names);
  // A machine that is changed is none that was measured.
  const auto is_change = [](const Override& change) { return change.keys[1] != "fingerprint"; };
  if (std::any_of(inside_machine.begin(), inside_machine.end(), is_change))
    std::erase_if(machine->entries, [](const Entry& entry) { return entry.key == "fingerprint"; });
  for (const Override& change : inside_machine) apply(change, root);
  resolve_machine(*root.find("machine"), directory, names);  // --set machine.derive_from=...
}

// workload.optimizer: adam is short for optimizer: {name: adam}; a duration there is the layers family's.
void expand_short_forms(Node& root) {
  Node* workload = root.find("workload");
  const Node* word = workload == nullptr ? nullptr : workload->find("optimizer");
  if (word == nullptr || word->kind != NodeKind::Scalar || (word->text != "adam" && word->text != "adamw")) return;
  const Node* family = workload->find("family");
  if (family != nullptr && family->text == "layers") return;  // a rule says that it wants a duration
  const Node name = *word;
  const Node* section = root.find("optimizer");
  if (section != nullptr && section->find("name") != nullptr)
    refuse(name.at, "workload.optimizer", "optimizer.name is given too", "one of the two");
  std::erase_if(workload->entries, [](const Entry& entry) { return entry.key == "optimizer"; });
  // From here on `workload` may dangle: a new key moves its siblings.
  Node& optimizer = root.at_key("optimizer", name.at);
  if (optimizer.kind == NodeKind::Null) optimizer.kind = NodeKind::Map;
  if (optimizer.kind == NodeKind::Map) optimizer.at_key("name", name.at) = name;  // the checker refuses other kinds
}

// What a policy or a family refuses begins with the dotted path of a key, which has a position.
[[noreturn]] void refuse_at_key(const std::string& message, const Node& root, const Values& values) {
  const std::string path = message.substr(0, message.find(':'));
  if (const Position* at = values.position(path)) throw ConfigError(at->text() + ": " + message);
  const Node* section = root.find(path.substr(0, path.find('.')));
  throw ConfigError((section != nullptr ? section->at : root.at).text() + ": " + message);
}

void make_trial(const Trial& trial, Scenario& scenario, const Node& root, const Values& values) {
  try {
    trial(scenario);
  } catch (const ConfigError& error) {
    refuse_at_key(error.what(), root, values);
  }
}

}  // namespace

Scenario read_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const std::string& directory, const KnownNames& names, const Trial& trial) {
  Node root = read_yaml(text, name);
  apply_overrides(root, overrides, directory, names);
  expand_short_forms(root);
  Values values;
  Checker(names, values).check(root, scenario_schema(), "");
  Node& machine = *root.find("machine");
  if (machine.find("name") == nullptr) {
    set_text(machine, "name", "inline");
    values.set("machine.name", machine.at, std::string("inline"));
  }
  Scenario scenario = build_scenario(values);
  check_scenario_rules(values, scenario);
  scenario.machine.text = to_yaml(machine);
  scenario.text = to_yaml(root);
  scenario.machine.path = machine.at.file ? *machine.at.file : name;
  scenario.warnings = oddities(scenario);
  apply_limits(scenario);
  if (trial) make_trial(trial, scenario, root, values);
  return scenario;
}

HardwareProfile read_profile(const std::string& text, const std::string& name, const KnownNames& names) {
  Node root = read_yaml(text, name);
  resolve_profile(root, name, names);
  if (root.find("name") == nullptr) set_text(root, "name", std::filesystem::path(name).stem().string());
  Values values;
  Checker(names, values).check(root, profile_schema(), "");
  check_profile_rules(values, "");
  HardwareProfile profile = build_profile(values, "");
  profile.text = to_yaml(root);
  profile.path = name;
  return profile;
}

}  // namespace tandem
