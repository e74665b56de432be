#include "core/scenario/dirs.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/scenario/checkout.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Folders that hold hardware_profiles/ and scenarios/, most specific first.
std::vector<fs::path> homes() {
  std::vector<fs::path> out;
  if (const char* home = std::getenv("TANDEM_HOME"); home != nullptr && *home != '\0') out.emplace_back(home);
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error) {
    const fs::path above = self.parent_path().parent_path();
    // <prefix>/bin/tandem, installed: it has all that it needs, and asks no checkout that may be gone or changed.
    if (const fs::path installed = above / "share" / "tandem"; fs::is_directory(installed, error)) {
      out.push_back(installed);
      return out;
    }
    out.push_back(above.parent_path());  // <home>/build/bin/tandem
  }
  out.emplace_back(kCheckout);
  return out;
}

std::vector<std::string> existing(const char* folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const fs::path& home : homes()) {
    const std::string path = (home / folder).lexically_normal().string();
    if (fs::is_directory(path, error) && std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
  }
  return out;
}

}  // namespace

std::vector<std::string> profile_dirs() { return existing("hardware_profiles"); }

std::vector<std::string> model_dirs() { return existing("models"); }

std::vector<std::string> product_dirs() { return existing("products"); }

std::vector<std::string> python_dirs() { return existing("python"); }

std::vector<std::string> scenario_dirs() { return existing("scenarios"); }

std::string beside_or_installed(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) || fs::path(path).is_absolute()) return path;
  for (const fs::path& home : homes())
    if (fs::exists(home / path, error)) return (home / path).string();
  return path;
}

std::string scenario_file(const std::string& path_or_name) {
  std::error_code error;
  if (fs::exists(path_or_name, error) || path_or_name.find('/') != std::string::npos) return path_or_name;
  for (const std::string& folder : scenario_dirs())
    if (const fs::path path = fs::path(folder) / (path_or_name + ".yaml"); fs::is_regular_file(path, error))
      return path.string();
  return path_or_name;
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const std::string& folder : scenario_dirs())
    for (std::string& stem : yaml_stems(folder)) names.push_back(std::move(stem));
  return names;
}

std::vector<std::string> yaml_stems(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml" && entry.is_regular_file(error))
      out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string beside_scenario(const std::string& path, const Scenario& scenario) {
  return (fs::path(scenario.path).parent_path() / path).string();
}

}  // namespace tandem
