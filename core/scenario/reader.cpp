#include "core/scenario/reader.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/base/check.hpp"
#include "core/scenario/build.hpp"
#include "core/scenario/machine_files.hpp"
#include "core/scenario/model_files.hpp"
#include "core/scenario/replaced_figures.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/overrides.hpp"

namespace tandem {
namespace {

void set_text(Node& map, const std::string& key, const std::string& text) {
  Node& node = map.at_key(key, map.at);
  node.kind = NodeKind::Scalar;
  node.text = text;
}

// The path of what a --set changes inside the machine.
std::string below_machine(const Override& change) {
  std::string path;
  for (std::size_t i = 1; i < change.keys.size(); ++i) path += (i == 1 ? "" : ".") + change.keys[i];
  return path;
}

// --set, with those that change a machine given by name applied to what the name stands for.
void apply_overrides(Node& root, const std::vector<std::string>& arguments, const std::string& directory,
                     const KnownNames& names, Findings& findings) {
  std::vector<Override> inside_machine;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    findings.collect([&] {
      Override change = read_override(arguments[i], static_cast<int>(i));
      if (change.keys.size() > 1 && change.keys.front() == "machine" && root.find("machine") != nullptr) {
        inside_machine.push_back(std::move(change));
      } else {
        apply(change, root);
      }
    });
  Node* machine = root.find("machine");
  if (machine == nullptr) return;
  resolve_machine(*machine, directory, names, findings);
  if (findings.is_spoiled("machine")) return;
  // A machine that is changed is none that was measured.
  const auto is_change = [](const Override& change) { return change.keys[1] != "fingerprint"; };
  if (std::any_of(inside_machine.begin(), inside_machine.end(), is_change))
    std::erase_if(machine->entries, [](const Entry& entry) { return entry.key == "fingerprint"; });
  for (const Override& change : inside_machine)
    forget_measurements(*machine, paths_of(change.value, below_machine(change)));
  for (const Override& change : inside_machine) findings.collect([&] { apply(change, root); });
  resolve_machine(*root.find("machine"), directory, names, findings);  // --set machine.derive_from=...
}

// Whether the family means something else by workload.optimizer than the name of one.
bool is_own_key(const Node& workload, const std::string& key, const KnownNames& names) {
  const Case* rule = case_of(workload, names.scenario->find("workload")->schema);
  return rule != nullptr && std::any_of(rule->properties.begin(), rule->properties.end(),
                                        [&](const Property& own) { return own.key == key; });
}

bool is_optimizer(const std::string& word, const KnownNames& names) {
  return std::any_of(names.optimizers.begin(), names.optimizers.end(),
                     [&](const auto& known) { return known.first == word; });
}

// workload.optimizer: adam is short for optimizer: {name: adam}.
void expand_short_forms(Node& root, const KnownNames& names) {
  Node* workload = root.find("workload");
  const Node* word = workload == nullptr ? nullptr : workload->find("optimizer");
  if (word == nullptr || word->kind != NodeKind::Scalar || !is_optimizer(word->text, names)) return;
  if (is_own_key(*workload, "optimizer", names)) return;
  const Node name = *word;
  const Node* section = root.find("optimizer");
  std::erase_if(workload->entries, [](const Entry& entry) { return entry.key == "optimizer"; });
  if (section != nullptr && section->find("name") != nullptr)
    refuse(name.at, "workload.optimizer", "optimizer.name is given too" + elsewhere(section->find("name")->at, name.at),
           "one of the two");
  // From here on `workload` may dangle: a new key moves its siblings.
  Node& optimizer = root.at_key("optimizer", name.at);
  if (optimizer.kind == NodeKind::Null) optimizer.kind = NodeKind::Map;
  if (optimizer.kind == NodeKind::Map) optimizer.at_key("name", name.at) = name;  // the checker refuses other kinds
}

// Betas that are not given are the optimizer's own.
void fill_betas(const Node& root, const KnownNames& names, Values& values) {
  const Node* section = root.find("optimizer");
  if (section == nullptr || section->kind != NodeKind::Map || section->find("betas") != nullptr) return;
  for (const auto& [name, betas] : names.optimizers) {
    if (!values.has("optimizer.name") || name != values.text("optimizer.name")) continue;
    values.set("optimizer.betas.0", section->at, betas[0]);
    values.set("optimizer.betas.1", section->at, betas[1]);
  }
}

// The machine of a scenario has a name, if only a stopgap.
void name_machine(Node& root, Values& values) {
  Node* machine = root.find("machine");
  if (machine == nullptr || machine->kind != NodeKind::Map || machine->find("name") != nullptr) return;
  set_text(*machine, "name", "inline");
  values.set("machine.name", machine->at, std::string("inline"));
}

}  // namespace

Node read_tree(const std::string& text, const std::string& name, Findings& findings) {
  Node root;
  findings.collect([&] { root = read_yaml(text, name, &findings); });
  if (root.kind != NodeKind::Map) findings.raise();
  return root;
}

Scenario read_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const std::string& directory, const KnownNames& names, const Making& making) {
  Findings findings;
  Node root = read_tree(text, name, findings);
  apply_overrides(root, overrides, directory, names, findings);
  if (Node* workload = root.find("workload")) resolve_model(*workload, directory, names, findings);
  findings.collect([&] { expand_short_forms(root, names); });
  const Node as_written = root;
  Values values;
  Checker(names, values, findings).check(root, *names.scenario, "");
  fill_betas(root, names, values);
  name_machine(root, values);
  Scenario scenario = build_scenario(values);
  check_scenario_rules(values, scenario, findings);
  if (making) making(as_written, findings);
  findings.raise();
  CHECK(root.find("machine") != nullptr, "the schema requires a machine", name);
  const Node& machine = *root.find("machine");
  set_text(root, "steps", std::to_string(scenario.steps));  // those of epochs, too
  scenario.machine.text = to_yaml(machine);
  scenario.text = to_yaml(root);
  scenario.machine.path = machine.at.file ? *machine.at.file : name;
  scenario.warnings = oddities(scenario);
  for (std::string& odd : odd_figures(values, "machine.")) scenario.warnings.push_back(std::move(odd));
  scenario.whole_machine = std::make_shared<const HardwareProfile>(scenario.machine);
  apply_limits(scenario);
  return scenario;
}

HardwareProfile read_profile(const std::string& text, const std::string& name, const KnownNames& names) {
  Findings findings;
  Node root = read_tree(text, name, findings);
  resolve_profile(root, name, names, findings);
  if (root.find("name") == nullptr) set_text(root, "name", std::filesystem::path(name).stem().string());
  Values values;
  Checker(names, values, findings).check(root, profile_schema(), "");
  check_profile_rules(values, "", findings);
  findings.raise();
  HardwareProfile profile = build_profile(values, "");
  profile.text = to_yaml(root);
  profile.path = name;
  return profile;
}

}  // namespace tandem
