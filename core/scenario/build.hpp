// Checked values to the structs that the rest of the program reads. Must not know YAML.
#pragma once

#include <string>

#include "core/scenario/scenario.hpp"
#include "core/scenario/values.hpp"

namespace tandem {

// `prefix` is "" for a profile file, "machine." inside a scenario.
HardwareProfile build_profile(const Values& values, const std::string& prefix);
// All but path, text and warnings. Policy options are read from `policy_options` below.
Scenario build_scenario(const Values& values);

// Rules between keys that a schema cannot say (rules.cpp). Throw ConfigError with the position of the key at fault.
void check_profile_rules(const Values& values, const std::string& prefix);
// Figures that no machine has, on their own or beside each other (plausible.cpp).
void check_plausible(const Values& values, const std::string& prefix);
void check_scenario_rules(const Values& values, const Scenario& scenario);
// What is odd but allowed. May give `scenario.machine` the emulated rate of a precision that it has no units for.
void warn(Scenario& scenario);

}  // namespace tandem
