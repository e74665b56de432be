#include "apps/sweep.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/yaml/suggest.hpp"

namespace tandem {
namespace {

constexpr const char* kValuesForm = "KEY=VALUE,VALUE,...";
constexpr const char* kRangeForm = "KEY=LOW..HIGH, two whole numbers";

constexpr std::int64_t kMost = 1'000'000'000'000'000;  // sums and doubles of it fit

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

std::int64_t number(const std::string& flag, const std::string& key, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMost)
    refuse(flag, key + ": '" + std::string(text) + "' is no whole number up to 10^15", kRangeForm);
  return value;
}

}  // namespace

SweptKey read_key_values(const std::string& flag, const std::string& argument) {
  SweptKey all{key_of(flag, argument, kValuesForm), {}};
  all.values = split(argument.substr(all.key.size() + 1));
  if (std::any_of(all.values.begin(), all.values.end(), [](const std::string& value) { return value.empty(); }))
    refuse(flag, all.key + ": " + (all.values.size() == 1 ? "has no values" : "has a value that is empty"),
           kValuesForm);
  return all;
}

KeyRange read_key_range(const std::string& flag, const std::string& argument) {
  KeyRange range{key_of(flag, argument, kRangeForm)};
  if (range.key.starts_with("policy."))
    refuse(flag, range.key + ": policies are what is compared", "a key of the rest of the scenario");
  const std::string_view text = std::string_view(argument).substr(range.key.size() + 1);
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) refuse(flag, range.key + ": '" + std::string(text) + "' has no '..'", kRangeForm);
  range.low = number(flag, range.key, text.substr(0, dots));
  range.high = number(flag, range.key, text.substr(dots + 2));
  if (range.low > range.high) refuse(flag, range.key + ": LOW is above HIGH", kRangeForm);
  return range;
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
