// Linux's own counters: /proc/stat, /proc/meminfo, /proc/self/status, and resctrl's memory bandwidth.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runtime/monitor/monitor.hpp"

namespace tandem {
namespace {

// "Key:   123 kB" lines, in bytes.
std::map<std::string, std::int64_t> kilobytes_of(const char* path) {
  std::map<std::string, std::int64_t> found;
  std::ifstream file(path);
  for (std::string key; file >> key;) {
    std::int64_t number = 0;
    if (key.ends_with(':') && file >> number) found[key.substr(0, key.size() - 1)] = number * 1024;
    file.clear();
    file.ignore(1 << 12, '\n');
  }
  return found;
}

struct CpuTime {
  std::int64_t busy = 0, all = 0;  // in the system's ticks, over all cores
  int cores = 0;
};

CpuTime cpu_time() {
  CpuTime time;
  std::ifstream file("/proc/stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return time;
  // user nice system idle iowait irq softirq steal
  for (int i = 0; i < 8; ++i) {
    std::int64_t ticks = 0;
    file >> ticks;
    time.all += ticks;
    if (i != 3 && i != 4) time.busy += ticks;
  }
  file.ignore(1 << 12, '\n');
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) ++time.cores;
  return time;
}

class HostUsage final : public UsageSource {
 public:
  void sample(Usage& usage) override {
    const CpuTime now = cpu_time();
    if (now.all > before_.all && before_.all > 0)
      usage.figures["cpu.busy_ppm"] = 1'000'000 * (now.busy - before_.busy) / (now.all - before_.all);
    usage.figures["cpu.cores"] = now.cores;
    before_ = now;
    const auto memory = kilobytes_of("/proc/meminfo"), process = kilobytes_of("/proc/self/status");
    note(memory, "MemTotal", "host.memory_bytes", usage);
    note(memory, "MemAvailable", "host.available_bytes", usage);
    note(memory, "Mlocked", "host.locked_bytes", usage);
    note(process, "VmRSS", "process.memory_bytes", usage);
    std::int64_t pinned = 0;
    for (const char* key : {"VmLck", "VmPin"})
      if (const auto found = process.find(key); found != process.end()) pinned += found->second;
    usage.figures["process.pinned_bytes"] = pinned;
  }

 private:
  static void note(const std::map<std::string, std::int64_t>& from, const char* key, const char* name, Usage& usage) {
    if (const auto found = from.find(key); found != from.end()) usage.figures[name] = found->second;
  }
  CpuTime before_;
};

class MemoryTraffic final : public UsageSource {
 public:
  static constexpr const char* kFolder = "/sys/fs/resctrl/mon_data";
  // The sum over memory domains; -1: none counts.
  static std::int64_t total_bytes() {
    std::int64_t total = -1;
    std::error_code ignored;
    for (const auto& domain : std::filesystem::directory_iterator(kFolder, ignored)) {
      std::ifstream file(domain.path() / "mbm_total_bytes");
      std::int64_t bytes = 0;
      if (file >> bytes) total = std::max<std::int64_t>(total, 0) + bytes;
    }
    return total;
  }
  void sample(Usage& usage) override {
    const auto now = std::chrono::steady_clock::now();
    const std::int64_t bytes = total_bytes();
    const double seconds = std::chrono::duration<double>(now - at_).count();
    if (bytes >= before_ && before_ >= 0 && seconds > 0)
      usage.figures["host.memory_traffic_bytes_per_s"] =
          static_cast<std::int64_t>(static_cast<double>(bytes - before_) / seconds);
    at_ = now;
    before_ = bytes;
  }

 private:
  std::chrono::steady_clock::time_point at_;
  std::int64_t before_ = -1;
};

}  // namespace

std::unique_ptr<UsageSource> host_usage() { return std::make_unique<HostUsage>(); }

std::unique_ptr<UsageSource> memory_traffic() {
  return MemoryTraffic::total_bytes() < 0 ? nullptr : std::make_unique<MemoryTraffic>();
}

}  // namespace tandem
