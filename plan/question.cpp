#include "plan/question.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/run/load.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scenario/reader.hpp"
#include "core/yaml/findings.hpp"
#include "core/yaml/overrides.hpp"
#include "core/yaml/suggest.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Runs under every family, and evicts what does not fit.
constexpr const char* kStandIn = "policy={name: on_demand}";

struct Named {
  const char* flag;
  const char* key;
  std::string PlanFlags::*value;
};
constexpr Named kNamed[] = {{"--model", "workload.model", &PlanFlags::model},
                            {"--machine", "machine", &PlanFlags::machine},
                            {"--host-memory", "limits.host_bytes", &PlanFlags::host_memory},
                            {"--device-memory", "limits.device_bytes", &PlanFlags::device_memory},
                            {"--disk", "limits.disk_bytes", &PlanFlags::disk_space},
                            {"--price", "machine.price_per_hour", &PlanFlags::price}};

std::vector<std::string> settings_of(const PlanFlags& flags) {
  std::vector<std::string> settings;
  for (const Named& named : kNamed)
    if (const std::string& value = flags.*named.value; !value.empty())
      settings.push_back(std::string(named.key) + "=" + value);
  settings.insert(settings.end(), flags.overrides.begin(), flags.overrides.end());
  // After a --set of the whole workload, which would take it away.
  if (flags.devices > 0) settings.push_back("workload.devices=" + std::to_string(flags.devices));
  if (flags.seed) settings.push_back("seed=" + std::to_string(*flags.seed));
  return settings;
}

// "--set machine: machine: there is none" is told of --machine, where that is what was written.
[[noreturn]] void refuse_by_flags(const ConfigError& error, const PlanFlags& flags) {
  std::string lines;
  for (std::string finding : error.findings()) {
    for (const Named& named : kNamed)
      if (const std::string place = std::string("--set ") + named.key + ":";
          !(flags.*named.value).empty() && finding.starts_with(place))
        finding = std::string(named.flag) + ":" + finding.substr(place.size());
    if (const std::string place = "--set workload.devices:"; flags.devices > 0 && finding.starts_with(place))
      finding = flags.devices_flag + ":" + finding.substr(place.size());
    lines += (lines.empty() ? "" : "\n") + finding;
  }
  throw ConfigError(lines);
}

void require_question(const PlanFlags& flags) {
  const bool has_workload = std::any_of(flags.overrides.begin(), flags.overrides.end(),
                                        [](const std::string& s) { return s.starts_with("workload"); });
  if (flags.file.empty() && flags.model.empty() && !has_workload)
    throw ConfigError("plan: neither FILE nor --model: say what is to be trained; see tandem plan --help");
  if (flags.file.empty() && flags.machine.empty())
    throw ConfigError("plan: --machine: is missing; the name or the path of a profile; see tandem list machines");
}

std::pair<std::string, std::string> parts_of(const std::string& key) {
  const std::size_t dot = key.find('.');
  return {key.substr(0, dot), dot == std::string::npos ? "" : key.substr(dot + 1)};
}

bool holds(const Node& root, const std::string& key) {
  const auto [section, rest] = parts_of(key);
  const Node* node = root.find(section);
  return node != nullptr && (rest.empty() || node->find(rest) != nullptr);
}

void erase(Node& map, const std::string& key) {
  std::erase_if(map.entries, [&](const Entry& entry) { return entry.key == key; });
}

void take_out(Node& root, const std::string& key) {
  const auto [section, rest] = parts_of(key);
  if (rest.empty()) return erase(root, section);
  if (Node* node = root.find(section)) erase(*node, rest);
}

void free_key(Node& root, const std::string& key) {
  if (!holds(root, key)) {
    std::vector<std::string> written;
    for (const Entry& entry : root.entries) {
      written.push_back(entry.key);
      for (const Entry& inner : entry.value.entries) written.push_back(entry.key + "." + inner.key);
    }
    const std::string near = suggest(key, written);
    throw ConfigError("--free: " + key + ": the scenario does not say it" +
                      (near.empty() ? "; allowed: a key that it has" : "; did you mean " + near + "?"));
  }
  take_out(root, key);
}

// A machine by name that is changed inside becomes one of its name that derives from it.
void apply_setting(const std::string& setting, int index, Node& root) {
  const Override change = read_override(setting, index);
  Node* machine = root.find("machine");
  if (change.keys.size() > 1 && change.keys.front() == "machine" && machine != nullptr &&
      machine->kind == NodeKind::Scalar) {
    Node derived;
    derived.kind = NodeKind::Map;
    derived.at = machine->at;
    derived.at_key("derive_from", machine->at) = *machine;
    derived.at_key("name", machine->at) = *machine;
    derived.at_key("name", machine->at).text = fs::path(machine->text).stem().string();
    *machine = derived;
  }
  apply(change, root);
}

bool comes_with_tandem(const std::string& word) {
  for (const std::vector<std::string>& folders : {profile_dirs(), model_dirs()})
    for (const std::string& folder : folders)
      if (std::error_code error; fs::is_regular_file(fs::path(folder) / (word + ".yaml"), error)) return true;
  return word == "corpus";
}

// What a scenario names beside itself, by a name that means the same elsewhere.
void make_absolute(Node* map, const char* key, const std::string& folder) {
  Node* node = map == nullptr ? nullptr : map->find(key);
  if (node == nullptr || node->kind != NodeKind::Scalar || comes_with_tandem(node->text)) return;
  for (const std::string& name : {node->text, node->text + ".yaml"})
    if (std::error_code error; fs::exists(fs::path(folder) / name, error)) {
      node->text = fs::absolute(fs::path(folder) / name).lexically_normal().string();
      return;
    }
}

void make_paths_absolute(Node& root, const std::string& folder) {
  make_absolute(&root, "machine", folder);
  for (const auto& [section, key] :
       {std::pair("machine", "derive_from"), std::pair("workload", "model"), std::pair("workload", "config"),
        std::pair("data", "text"), std::pair("data", "images")})
    make_absolute(root.find(section), key, folder);
}

}  // namespace

bool says_policy(const Node& root, const std::vector<std::string>& settings) {
  return holds(root, "policy") ||
         std::any_of(settings.begin(), settings.end(), [](const std::string& s) { return s.starts_with("policy"); });
}

// Somebody who has more memory than the machine's profile has a machine with more.
std::vector<std::string> larger_memories(const PlanFlags& flags, const Scenario& base) {
  std::vector<std::string> settings;
  const auto add = [&](const std::string& asked, std::int64_t bytes, Tier tier, const char* key) {
    if (asked.empty() || bytes <= base.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes) return;
    settings.push_back("machine.tiers." + std::string(key) + ".capacity=" + asked);
  };
  add(flags.host_memory, base.limits.host_bytes, Tier::HostPinned, "host_pinned");
  add(flags.device_memory, base.limits.device_bytes, Tier::Device, "device");
  return settings;
}

Question::Question(const PlanFlags& flags) : flags_(flags) {
  require_question(flags);
  name_ = flags.file.empty() ? "the question" : flags.file;
  folder_ = fs::path(flags.file).parent_path().string();
  if (folder_.empty()) folder_ = ".";
  const std::string text = flags.file.empty() ? "{}" : read_text_file(flags.file);
  std::vector<std::string> settings = settings_of(flags);
  Findings findings;
  root_ = read_tree(text, name_, findings);
  std::vector<std::string> checked = settings;
  if (!says_policy(root_, settings)) checked.emplace_back(kStandIn);
  try {
    base_ = parse_scenario(text, name_, checked, folder_);
  } catch (const ConfigError& error) {
    refuse_by_flags(error, flags);
  }
  const std::vector<std::string> larger = larger_memories(flags, base_);
  settings.insert(settings.end(), larger.begin(), larger.end());
  for (std::size_t i = 0; i < settings.size(); ++i) apply_setting(settings[i], static_cast<int>(i), root_);
  for (const std::string& key : flags.free) free_key(root_, key);
  if (flags.samples > 0)
    for (const char* key : {"workload.batch", "workload.micro_batches"}) take_out(root_, key);
  make_paths_absolute(root_, folder_);
  text_ = to_yaml(root_);
  base_ = with({});
  base_.path = flags.file;
}

bool Question::fixed(const std::string& key) const { return holds(root_, key); }

Scenario Question::with(const std::vector<std::string>& settings) const {
  std::vector<std::string> all;
  if (!fixed("policy")) all.emplace_back(kStandIn);
  all.insert(all.end(), settings.begin(), settings.end());
  return parse_unmade_scenario(text_, name_, all, folder_);
}

std::string Question::text_with(const std::vector<std::string>& settings) const {
  Node root = root_;
  for (std::size_t i = 0; i < settings.size(); ++i) apply_setting(settings[i], static_cast<int>(i), root);
  return to_yaml(root);
}

}  // namespace tandem
