// YAML files to checked structs, with the policies and families that this build has. What is wrong with a file is one
// ConfigError with a line for each error that begins "file:line:column: key: ": all of them, in file order, but for
// those that another error leaves without meaning.
#pragma once

#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/scenario.hpp"
#include "core/yaml/known_names.hpp"

namespace tandem {

// The policies, families and folders of profiles of this build.
KnownNames registered_names();

// The JSON Schema of scenarios, with what the families of this build take.
std::string scenario_schema_text();

// `path`: of a file, a name of scenarios/ without its extension, or FILE#KEY, the map at KEY of FILE.
// `overrides` are --set arguments, "path.to.key=value", applied before checking. `machine: name` is looked up as
// <profile_dir>/name.yaml for each directory of profile_dirs() and beside the scenario. Throws ConfigError.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides = {});
// The same from a text; `name` stands for the file in messages, `directory` for its folder.
Scenario parse_scenario(const std::string& text, const std::string& name,
                        const std::vector<std::string>& overrides = {}, const std::string& directory = ".");
// The same for one of many that will be made at once: what policy and workload refuse, they say then, without a place.
Scenario parse_unmade_scenario(const std::string& text, const std::string& name,
                               const std::vector<std::string>& overrides, const std::string& directory);
HardwareProfile load_profile(const std::string& path);
HardwareProfile parse_profile(const std::string& text, const std::string& name);
// A file that is either, told apart by its keys: a scenario has `workload`, a profile `tiers` or `derive_from`. Throws
// ConfigError for whatever loading it would refuse. Reads the file once, which may be a pipe.
struct CheckedFile {
  enum class Kind { Scenario, Profile } kind = Kind::Scenario;
  std::vector<std::string> warnings;  // of a scenario
};
CheckedFile check_file(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace tandem
