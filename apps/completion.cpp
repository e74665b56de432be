#include "apps/completion.hpp"

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/run/load.hpp"

namespace tandem {
namespace {

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// Keys whose values are names of files that come with Tandem: the schema has no list of these.
Completed named_by_key(const std::string& key) {
  using Kind = Completed::Kind;
  if (key == "machine") return {Kind::Names, {}, "machines", false, true};
  if (key == "workload.model") return {Kind::Names, {}, "models", false, true};
  return {};
}

Completed value_of(const std::string& key, const nlohmann::ordered_json& node) {
  using Kind = Completed::Kind;
  if (node.contains("x-registry")) return {Kind::Names, {}, node.at("x-registry"), false, false};
  Completed value = named_by_key(key);
  if (node.value("type", nlohmann::ordered_json()) == "boolean")
    value = {Kind::Words, {"true", "false"}, "", false, false};
  if (!node.contains("enum")) return value;
  value.kind = Kind::Words;
  for (const auto& word : node.at("enum"))
    value.words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  return value;
}

void add_keys(const nlohmann::ordered_json& node, const std::string& prefix, std::vector<CompletedKey>& keys) {
  if (!node.contains("properties")) return;
  for (const auto& [name, child] : node.at("properties").items()) {
    keys.push_back({prefix + name, value_of(prefix + name, child)});
    add_keys(child, prefix + name + ".", keys);
  }
}

}  // namespace

Completed completed_by(const DeclaredFlag& flag) {
  using Kind = Completed::Kind;
  const std::string& value = flag.value.empty() ? flag.names : flag.value;  // of an argument, often its name
  if (value == "MODEL") return {Kind::Names, {}, "models", false, true};
  if (value == "MACHINE") return {Kind::Names, {}, "machines", false, true};
  if (value.starts_with("POLICY,")) return {Kind::Names, {}, "policies", true, false};
  if (value == "DIR") return {Kind::Folder, {}, "", false, false};
  for (const char* file : {"FILE", "LOG", "RESULTS", "PROFILE"})
    if (value.starts_with(file)) return {Kind::File, {}, "", false, false};
  if (value.starts_with("path.to.key=") || value.starts_with("KEY=")) return {Kind::Setting, {}, "", false, false};
  if (std::regex_match(value, std::regex(R"([a-z0-9_]+(\|[a-z0-9_]+)+)")))
    return {Kind::Words, parts_of(value, '|'), "", false, false};
  if (std::regex_match(value, std::regex(R"([a-z]+(,[a-z]+)+)")))
    return {Kind::Words, parts_of(value, ','), "", true, false};
  return {};
}

std::vector<CompletedKey> completed_keys() {
  std::vector<CompletedKey> keys;
  add_keys(nlohmann::ordered_json::parse(scenario_schema_text()), "", keys);
  return keys;
}

std::vector<std::string> names_of(const DeclaredFlag& flag) {
  std::vector<std::string> names = parts_of(flag.names, ',');
  for (std::string& name : names) name.erase(0, name.find_first_not_of(' '));
  return names;
}

std::string completion_script(const std::string& shell, const Declarations& declarations) {
  if (shell == "bash") return bash_completion(declarations);
  return shell == "zsh" ? zsh_completion(declarations) : fish_completion(declarations);
}

}  // namespace tandem
