#include "runtime/host_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Version 1 says "no limit" with a number near 2^63.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

// Files of a group's folder.
struct Files {
  const char *limit, *used;
};
constexpr Files kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes"};
constexpr Files kVersion2 = {"memory.max", "memory.current"};

// 0: none. Version 2 says "max", which is no number.
std::int64_t number_in(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t bytes = 0;
  return in >> bytes && bytes < kNoLimit ? bytes : 0;
}

// Calls visit(folder, files) for the groups of the process, and those above them, that limit memory.
template <class Visit>
void for_limits(const std::string& groups, const std::string& mount, const Visit& visit) {
  const auto upwards = [&](const fs::path& root, fs::path path, const Files& files) {
    for (;; path = path.parent_path()) {
      const fs::path folder = root / path.relative_path();
      if (number_in(folder / files.limit) > 0) visit(folder, files);
      if (path.empty() || path == path.parent_path()) return;
    }
  };
  std::ifstream in(groups);
  for (std::string line; std::getline(in, line);) {  // "4:memory:/a/b" (version 1), "0::/a/b" (version 2)
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controller.empty()) upwards(mount, path, kVersion2);
    if (controller == "memory") upwards(fs::path(mount) / "memory", path, kVersion1);
  }
}

}  // namespace

std::int64_t cgroup_limit_bytes(const std::string& groups, const std::string& mount) {
  std::int64_t tightest = 0;
  for_limits(groups, mount, [&](const fs::path& folder, const Files& files) {
    const std::int64_t limit = number_in(folder / files.limit);
    tightest = tightest > 0 ? std::min(tightest, limit) : limit;
  });
  return tightest;
}

std::int64_t free_host_bytes(const std::string& groups, const std::string& mount, const std::string& meminfo) {
  std::int64_t free = 0;
  std::ifstream in(meminfo);
  for (std::string line; std::getline(in, line);)  // "MemAvailable:  123456 kB"
    if (constexpr std::string_view kKey = "MemAvailable:"; line.starts_with(kKey))
      free = std::atoll(line.c_str() + kKey.size()) * 1024;
  for_limits(groups, mount, [&](const fs::path& folder, const Files& files) {
    free = std::min(free, number_in(folder / files.limit) - number_in(folder / files.used));
  });
  return std::max<std::int64_t>(0, free);
}

std::int64_t for_arenas(std::int64_t limit_bytes) {
  constexpr std::int64_t kProgramBytes = std::int64_t{4} << 30;
  return limit_bytes - std::min(kProgramBytes, limit_bytes / 4);
}

}  // namespace tandem
