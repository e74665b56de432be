#include "runtime/host_memory.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Version 1 says "no limit" with a number near 2^63.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

// 0: none. Version 2 says "max", which is no number.
std::int64_t limit_in(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t bytes = 0;
  return in >> bytes && bytes < kNoLimit ? bytes : 0;
}

// The tightest of the group at `path` and of those above it.
std::int64_t limit_above(const fs::path& mount, fs::path path, const char* file) {
  std::int64_t tightest = 0;
  for (;; path = path.parent_path()) {
    const std::int64_t limit = limit_in(mount / path.relative_path() / file);
    if (limit > 0) tightest = tightest > 0 ? std::min(tightest, limit) : limit;
    if (path.empty() || path == path.parent_path()) return tightest;
  }
}

}  // namespace

std::int64_t cgroup_limit_bytes(const std::string& groups, const std::string& mount) {
  std::ifstream in(groups);
  std::int64_t tightest = 0;
  for (std::string line; std::getline(in, line);) {  // "4:memory:/a/b" (version 1), "0::/a/b" (version 2)
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    std::int64_t limit = 0;
    if (controller.empty()) limit = limit_above(mount, path, "memory.max");
    if (controller == "memory") limit = limit_above(fs::path(mount) / "memory", path, "memory.limit_in_bytes");
    if (limit > 0) tightest = tightest > 0 ? std::min(tightest, limit) : limit;
  }
  return tightest;
}

std::int64_t for_arenas(std::int64_t limit_bytes) {
  constexpr std::int64_t kProgramBytes = std::int64_t{4} << 30;
  return limit_bytes - std::min(kProgramBytes, limit_bytes / 4);
}

}  // namespace tandem
