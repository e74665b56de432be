#include "apps/sweep_flags.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/yaml/suggest.hpp"

namespace tandem {
namespace {

constexpr const char* kValuesForm = "KEY=VALUE,VALUE,...";
constexpr const char* kRangeForm = "KEY=LOW..HIGH, two whole numbers";

[[noreturn]] void refuse(const std::string& flag, const std::string& problem, const std::string& allowed) {
  throw ConfigError(flag + ": " + problem + "; allowed: " + allowed);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string key_of(const std::string& flag, const std::string& argument, const std::string& form) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) refuse(flag, "'" + argument + "' has no '='", form);
  std::string key = argument.substr(0, equals);
  if (key.empty()) refuse(flag, "names no key", form);
  if (key == "policy" || key == "policy.name")
    refuse(flag, key + ": policies are what is compared", "--policies, and options of the scenario's own");
  return key;
}

// In a flag: a place without lines.
Position place(const std::string& flag) { return {std::make_shared<const std::string>(flag), 0, 0}; }

}  // namespace

Axis read_key_values(const std::string& flag, const std::string& argument) {
  const std::string key = key_of(flag, argument, kValuesForm);
  const std::vector<std::string> words = split(argument.substr(key.size() + 1));
  if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.empty(); }))
    refuse(flag, key + ": " + (words.size() == 1 ? "has no values" : "has a value that is empty"), kValuesForm);
  std::vector<Node> values;
  for (const std::string& word : words) values.push_back(read_yaml_value(word, flag, key));
  Axis axis = axis_of(key, values, place(flag));
  for (std::size_t i = 0; i < words.size(); ++i) axis.values[i].label = words[i];  // as it was written
  return axis;
}

KeyRange read_key_range(const std::string& flag, const std::string& argument) {
  const std::string key = key_of(flag, argument, kRangeForm);
  if (key.starts_with("policy."))
    refuse(flag, key + ": policies are what is compared", "a key of the rest of the scenario");
  return range_of(key, argument.substr(key.size() + 1), place(flag));
}

std::vector<std::string> read_names(const std::string& flag, const std::string& argument,
                                    const std::vector<std::string>& allowed) {
  std::vector<std::string> names;
  for (const std::string& name : split(argument)) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      const std::string near = suggest(name, allowed);
      throw ConfigError(flag + ": there is no policy '" + name + "'" +
                        (near.empty() ? "; see tandem list policies" : "; did you mean " + near + "?"));
    }
    if (std::find(names.begin(), names.end(), name) != names.end())
      refuse(flag, name + " is named twice", "each policy once");
    names.push_back(name);
  }
  return names;
}

}  // namespace tandem
