#include "core/policies/common/options.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& allowed) {
  throw ConfigError("policy." + name + ": '" + text + "' is not allowed; allowed: " + allowed);
}

}  // namespace

std::string text_option(const Scenario& scenario, const std::string& name) {
  const auto found = scenario.policy.options.find(name);
  return found == scenario.policy.options.end() ? "" : found->second;
}

bool bool_option(const Scenario& scenario, const std::string& name, bool otherwise) {
  const std::string text = text_option(scenario, name);
  if (text.empty()) return otherwise;
  if (text == "true") return true;
  if (text == "false") return false;
  refuse(name, text, "true, false");
}

namespace {

template <typename Number>
Number read_number(const Scenario& scenario, const std::string& name, Number low, Number high, Number otherwise,
                   const std::string& allowed) {
  CHECK(low <= high, name, low, high);
  const std::string text = text_option(scenario, name);
  if (text.empty()) return otherwise;
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool in_range = value >= low && value <= high;  // not a NaN
  if (error != std::errc() || end != text.data() + text.size() || !in_range) refuse(name, text, allowed);
  return value;
}

}  // namespace

std::int64_t int_option(const Scenario& scenario, const std::string& name, std::int64_t low, std::int64_t high,
                        std::int64_t otherwise) {
  return read_number(scenario, name, low, high, otherwise,
                     "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
}

double number_option(const Scenario& scenario, const std::string& name, double low, double high, double otherwise) {
  std::ostringstream range;
  range << "a number from " << low << " to " << high;
  return read_number(scenario, name, low, high, otherwise, range.str());
}

std::optional<std::int64_t> int_or_auto_option(const Scenario& scenario, const std::string& name, std::int64_t low,
                                               std::int64_t high) {
  const std::string text = text_option(scenario, name);
  if (text.empty() || text == "auto") return std::nullopt;
  return int_option(scenario, name, low, high, low);
}

std::string choice_option(const Scenario& scenario, const std::string& name,
                          std::initializer_list<std::string_view> allowed) {
  CHECK(allowed.size() > 0, name);
  std::string text = text_option(scenario, name);
  if (text.empty()) return std::string(*allowed.begin());
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  std::string list;
  for (std::string_view word : allowed) list += (list.empty() ? "" : ", ") + std::string(word);
  refuse(name, text, list);
}

std::vector<Binding> bind_all(Tier lowest, const std::string& name, const std::string& value) {
  std::vector<Binding> bindings;
  for (int role = 0; role < kRoleCount; ++role)
    bindings.push_back({.role = static_cast<Role>(role), .lowest = lowest, .option = name + ": " + value});
  return bindings;
}

void require_adam(const Scenario& scenario, const std::string& policy, const std::string& where_they_are) {
  const OptimizerOptions& o = scenario.optimizer;
  if (o.name != "adam" && o.name != "adamw")
    throw ConfigError("optimizer.name: " + policy + " is a way to compute Adam, not " + o.name +
                      "; allowed: adam, adamw");
  if (o.name == "adam" && o.weight_decay > 0)
    throw ConfigError("optimizer.weight_decay: adam would add the parameters to gradients, which " + where_they_are +
                      "; allowed: 0, or optimizer.name adamw");
}

}  // namespace tandem
