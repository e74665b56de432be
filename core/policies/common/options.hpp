// Reads a policy's options from the scenario; wrong values are input errors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

bool bool_option(const Scenario& scenario, const std::string& name, bool otherwise);
std::int64_t int_option(const Scenario& scenario, const std::string& name, std::int64_t low, std::int64_t high,
                        std::int64_t otherwise);
// A number from `low` to `high`.
double number_option(const Scenario& scenario, const std::string& name, double low, double high, double otherwise);
// None where it is not given, or "auto".
std::optional<std::int64_t> int_or_auto_option(const Scenario& scenario, const std::string& name, std::int64_t low,
                                               std::int64_t high);
// One of `allowed`; the first if not given.
std::string choice_option(const Scenario& scenario, const std::string& name,
                          std::initializer_list<std::string_view> allowed);
// Binds everything to the tier and those above it, by the option `name: value`.
std::vector<Binding> bind_all(Tier lowest, const std::string& name, const std::string& value);
// For a policy whose updates are Adam's, of fp32 moments. Throws ConfigError for other optimizers, and for adam with
// weight decay, which is a part of gradients that the update of such a policy does not see (`where_they_are`).
void require_adam(const Scenario& scenario, const std::string& policy, const std::string& where_they_are);
// The option's text, or "" if it is not given.
std::string text_option(const Scenario& scenario, const std::string& name);

}  // namespace tandem
