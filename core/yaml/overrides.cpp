#include "core/yaml/overrides.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr const char* kForm = "path.to.key=value";

bool is_key(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> keys;
  std::size_t start = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', start)) {
    keys.push_back(path.substr(start, dot - start));
    start = dot + 1;
  }
  keys.push_back(path.substr(start));
  return keys;
}

}  // namespace

Override read_override(const std::string& argument, int index) {
  const std::size_t equals = argument.find('=');
  const std::string path = argument.substr(0, equals);
  Override change{"--set " + path, split(path), Node()};
  const Position at{std::make_shared<const std::string>(change.source), 0, index, kFlagDistance};
  if (equals == std::string::npos) refuse(at, "--set", shown(argument) + " has no '='", kForm);
  if (change.keys.size() > kMostDepth || !std::all_of(change.keys.begin(), change.keys.end(), is_key))
    refuse(at, "--set", shown(path) + " is not keys joined by dots", kForm);
  change.value = read_yaml_value(argument.substr(equals + 1), change.source, path);
  visit_positions(change.value, [&](Position& place) { place = at; });
  if (change.value.kind == NodeKind::Null) refuse(at, path, "has no value", kForm);
  return change;
}

void apply(const Override& change, Node& root) {
  CHECK(!change.keys.empty(), change.source, "sets nothing");
  Node* node = &root;
  std::string path;
  for (const std::string& key : change.keys) {
    if (node->kind == NodeKind::Null) node->kind = NodeKind::Map;
    if (node->kind != NodeKind::Map)
      refuse(change.value.at, join(change.keys, "."), path + " is " + describe(*node) + ", not a map",
             "the path of a key");
    path += (path.empty() ? "" : ".") + key;
    node = &node->at_key(key, change.value.at);
  }
  *node = change.value;
}

}  // namespace tandem
