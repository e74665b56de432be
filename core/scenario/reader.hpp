// Texts to scenarios and profiles, with the names that they may use given from outside. Must not know policies or
// families, nor where the texts come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/yaml/findings.hpp"
#include "core/yaml/known_names.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// The tree of a text. What cannot be read at all ends the reading; with it come the errors found before.
Node read_tree(const std::string& text, const std::string& name, Findings& findings);

// What looks at a scenario's tree, with --set applied and the machine inlined, before defaults; adds what it refuses.
using Making = std::function<void(const Node& root, Findings& findings)>;

// What is wrong is one ConfigError with a line for each error that begins "file:line:column: key: ". `name` stands for
// the file in messages, `directory` is its folder, `overrides` are --set arguments.
Scenario read_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const std::string& directory, const KnownNames& names, const Making& making = {});
HardwareProfile read_profile(const std::string& text, const std::string& name, const KnownNames& names);

}  // namespace tandem
