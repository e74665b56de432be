// Where data files are, and how their errors read.
#pragma once

#include <string>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Throws ConfigError "scenario: key: problem; allowed".
[[noreturn]] void data_error(const Scenario& scenario, const std::string& key, const std::string& problem,
                             const std::string& allowed);
// The path of a file that set-up puts into .cache/ of Tandem's folder. Throws ConfigError where it is missing.
std::string installed_file(const std::string& name, const Scenario& scenario, const std::string& key);
// `path` as written in the scenario: relative ones count from the scenario's folder.
std::string beside_scenario(const std::string& path, const Scenario& scenario);
// Throws ConfigError for a folder, a pipe, a socket or a device, before anything waits for it. What is missing passes:
// opening it says why.
void require_file(const std::string& path, const Scenario& scenario, const std::string& key,
                  const std::string& allowed);
// All bytes of a file. Throws ConfigError.
std::string read_whole(const std::string& path, const Scenario& scenario, const std::string& key);

}  // namespace tandem
