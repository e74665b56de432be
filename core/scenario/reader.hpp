// Reading with names given from outside: what load.hpp offers, for tests. Must not know any world.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/known_names.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

Scenario read_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const std::string& directory, const KnownNames& names);
HardwareProfile read_profile(const std::string& text, const std::string& name, const KnownNames& names);

}  // namespace tandem
