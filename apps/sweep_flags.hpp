// The flags by which `tandem compare-policies` varies keys of its scenario, as what a sweep's file says. Knows no
// scenario.
#pragma once

#include <string>
#include <vector>

#include "sweep/plan.hpp"

namespace tandem {

// "KEY=VALUE,VALUE,...": commas inside brackets part no values. All throw ConfigError, which names `flag`.
Axis read_key_values(const std::string& flag, const std::string& argument);

// "KEY=LOW..HIGH", 0 <= LOW <= HIGH.
KeyRange read_key_range(const std::string& flag, const std::string& argument);

// "NAME,NAME,...", each one of `allowed` and named once.
std::vector<std::string> read_names(const std::string& flag, const std::string& argument,
                                    const std::vector<std::string>& allowed);

}  // namespace tandem
