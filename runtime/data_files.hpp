// Where data files are, and how their errors read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/input_file.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Throws ConfigError "scenario: key: problem; allowed".
[[noreturn]] void data_error(const Scenario& scenario, const std::string& key, const std::string& problem,
                             const std::string& allowed);
// The path of a file that set-up puts into .cache/ of Tandem's folder. Throws ConfigError where it is missing.
std::string installed_file(const std::string& name, const Scenario& scenario, const std::string& key);
// Throws ConfigError for what is missing, and for a folder, a pipe, a socket or a device, without waiting for it.
std::unique_ptr<InputFile> open_data_file(const std::string& path, const Scenario& scenario, const std::string& key,
                                          const std::string& allowed);
// All bytes of a file that is held in memory. Throws ConfigError.
inline constexpr std::int64_t kMostDataBytes = (std::int64_t{1} << 31) + 64;  // IDX of 2^31 pixels, with its header
std::string read_whole(const std::string& path, const Scenario& scenario, const std::string& key);

}  // namespace tandem
