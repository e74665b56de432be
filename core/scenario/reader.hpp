// Texts to scenarios and profiles, with the names that they may use given from outside. Must not know policies or
// families, nor where the texts come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/yaml/known_names.hpp"

namespace tandem {

// What looks at a scenario that is read, and may complete it: throws ConfigError whose text begins with a dotted path.
using Trial = std::function<void(Scenario&)>;

// Every error is a ConfigError whose text begins "file:line:column: key: ". `name` stands for the file in messages,
// `directory` is its folder, `overrides` are --set arguments.
Scenario read_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const std::string& directory, const KnownNames& names, const Trial& trial = {});
HardwareProfile read_profile(const std::string& text, const std::string& name, const KnownNames& names);

}  // namespace tandem
