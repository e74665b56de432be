// YAML files to checked structs. Every error is a ConfigError whose text begins "file:line:column: key: ".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/errors.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// `overrides` are --set arguments, "path.to.key=value", applied before checking. `machine: name` is looked up as
// <profile_dir>/name.yaml for each directory of profile_dirs() and beside the scenario. Throws ConfigError.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides = {});
// The same from a text; `name` stands for the file in messages, `directory` for its folder.
Scenario parse_scenario(const std::string& text, const std::string& name,
                        const std::vector<std::string>& overrides = {}, const std::string& directory = ".");
HardwareProfile load_profile(const std::string& path);
HardwareProfile parse_profile(const std::string& text, const std::string& name);
// The value of Scenario::text: YAML that parses to the same scenario, with --set applied and the machine inlined.
// Folders searched for profiles and scenarios: $TANDEM_HOME, then the executable's ../.. and the source tree.
std::vector<std::string> profile_dirs();
std::vector<std::string> scenario_dirs();

// A file that is either, told apart by its keys: a scenario has `workload`, a profile `tiers` or `derive_from`. Throws
// ConfigError for whatever loading it would refuse.
enum class FileKind { Scenario, Profile };
FileKind check_file(const std::string& path, const std::vector<std::string>& overrides = {});

// The closest of `allowed` to `word` by edit distance if near enough to be a slip, else "".
std::string suggest(std::string_view word, const std::vector<std::string>& allowed);

}  // namespace tandem
