// Where hardware profiles, scenarios and models lie, and the YAML files of a folder. Must not know what is in them.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct Scenario;

// `path` as written in the scenario: relative ones count from the scenario's folder.
std::string beside_scenario(const std::string& path, const Scenario& scenario);

// Folders searched for profiles, scenarios and models: $TANDEM_HOME, then the executable's ../.. and the source tree.
std::vector<std::string> profile_dirs();
std::vector<std::string> scenario_dirs();
std::vector<std::string> python_dirs();

// A path as it is, or where nothing is there, the same beside the folders above.
std::string beside_or_installed(const std::string& path);
std::vector<std::string> model_dirs();
std::vector<std::string> product_dirs();

// The file that a scenario's path or name stands for: NAME is NAME.yaml of one of scenario_dirs(), unless there is a
// file of that name. What is not found stays as it is.
std::string scenario_file(const std::string& path_or_name);
// The names that it takes.
std::vector<std::string> scenario_names();

// Names without extension, sorted; empty where there is no such folder.
std::vector<std::string> yaml_stems(const std::string& folder);

}  // namespace tandem
