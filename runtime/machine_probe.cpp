#include "runtime/machine_probe.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

// The first line of a file that begins with `key`, behind its colon; "" if there is none.
std::string value_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// This process's control group under one controller ("" for the unified hierarchy); "" if there is none.
std::string control_group(std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/path"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controller)
      return line.substr(second + 1);
  }
  return "";
}

// A limit of the group or of the nearest group above it that has one; `fallback` without any ("max" is none).
double group_limit(const std::string& root, std::string group, const std::string& file, double fallback) {
  for (;; group = group.substr(0, group.rfind('/'))) {
    const std::string word = first_word(root + group + "/" + file);
    if (!word.empty() && word != "max" && word != "-1") return std::min(fallback, std::stod(word));
    if (group.empty() || group == "/") return fallback;
  }
}

std::int32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  double quota = count;
  if (const std::string group = control_group(""); !group.empty()) {
    std::ifstream file("/sys/fs/cgroup" + group + "/cpu.max");
    double allowed = 0, period = 0;
    if (file >> allowed >> period && period > 0) quota = std::min(quota, allowed / period);
  }
  return std::max(1, static_cast<std::int32_t>(std::floor(quota)));
}

}  // namespace

MachineFacts probe_machine() {
  MachineFacts facts;
  facts.processor = value_of("/proc/cpuinfo", "model name");
  if (facts.processor.empty()) facts.processor = "unknown processor";
  facts.cores = usable_cores();
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page_bytes <= 0) throw DeviceError("the system does not say how much memory it has");
  const double machine_bytes = static_cast<double>(pages) * static_cast<double>(page_bytes);
  double bytes = group_limit("/sys/fs/cgroup", control_group(""), "memory.max", machine_bytes);
  bytes = group_limit("/sys/fs/cgroup/memory", control_group("memory"), "memory.limit_in_bytes", bytes);
  facts.memory_bytes = static_cast<std::int64_t>(bytes);
  facts.memory_source = bytes < machine_bytes ? "the control group's limit" : "the machine's memory";
  return facts;
}

}  // namespace tandem
