// A hardware profile as the YAML file that load_profile reads back. Must not know how its numbers were found.
#pragma once

#include <string>

#include "core/machine/profile.hpp"

namespace tandem {

// Every number with its unit; `source` stands for all of them. What a profile does not have is left out.
std::string profile_yaml(const HardwareProfile& profile, const std::string& description, const std::string& source);

}  // namespace tandem
