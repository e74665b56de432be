#include "runtime/data_files.hpp"

#include <filesystem>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scenario/dirs.hpp"

namespace tandem {

namespace fs = std::filesystem;

void data_error(const Scenario& scenario, const std::string& key, const std::string& problem,
                const std::string& allowed) {
  const std::string file = scenario.path.empty() ? "scenario" : scenario.path;
  throw ConfigError(file + ": " + key + ": " + problem + "; allowed: " + allowed);
}

std::string installed_file(const std::string& name, const Scenario& scenario, const std::string& key) {
  // Set-up writes beside the folders of profiles that come with Tandem.
  for (const std::string& profiles : profile_dirs()) {
    const fs::path path = fs::path(profiles).parent_path() / ".cache" / name;
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path.string();
  }
  data_error(scenario, key, "the installed " + name + " is missing", "a path, or run `make setup`");
}

std::unique_ptr<InputFile> open_data_file(const std::string& path, const Scenario& scenario, const std::string& key,
                                          const std::string& allowed) {
  if (const std::string other = other_than_a_file(path); !other.empty())
    data_error(scenario, key, path + " is not a file but " + other, allowed);
  try {
    return std::make_unique<InputFile>(path);
  } catch (const UnreadableFile& error) {
    data_error(scenario, key, path + " " + error.what(), allowed);
  }
}

std::string read_whole(const std::string& path, const Scenario& scenario, const std::string& key) {
  try {
    return open_data_file(path, scenario, key, "a file")->rest(kMostDataBytes);
  } catch (const UnreadableFile& error) {
    data_error(scenario, key, path + " " + error.what(),
               "a file of at most " + std::to_string(kMostDataBytes) + " bytes");
  }
}

}  // namespace tandem
