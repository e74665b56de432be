// What the parts of the machine do right now: how busy GPUs and cores are, what memory is taken, what goes over PCIe.
// Sampled from the driver and the system, as far as each can be read. Must not know runs or schedulers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/scheduler/seam.hpp"

namespace tandem {

// Each adds its figures to a sample, named "<part>.<what>_<unit>". Rates are of the time since the sample before.
class UsageSource {
 public:
  virtual ~UsageSource() = default;
  virtual void sample(Usage& usage) = 0;
};
// gpu0.busy_ppm, .memory_used_bytes, .memory_bytes, .pcie_up_bytes_per_s, .pcie_down_bytes_per_s, .power_mw,
// .clock_mhz. Null: no NVIDIA driver is here. A sample takes some 40 ms a GPU: the driver counts PCIe traffic
// meanwhile.
std::unique_ptr<UsageSource> gpu_usage();
// cpu.busy_ppm (of all cores), cpu.cores, host.memory_bytes, .available_bytes, .locked_bytes, process.memory_bytes,
// .pinned_bytes (locked or pinned by a driver).
std::unique_ptr<UsageSource> host_usage();
// host.memory_traffic_bytes_per_s, where the kernel's resctrl file system is mounted and counts it. Null: it is not.
std::unique_ptr<UsageSource> memory_traffic();

class Monitor {
 public:
  // All sources that are here.
  Monitor();
  explicit Monitor(std::vector<std::unique_ptr<UsageSource>> sources) : sources_(std::move(sources)) {}
  Usage sample();
  bool has_gpu() const { return has_gpu_; }

 private:
  std::vector<std::unique_ptr<UsageSource>> sources_;
  bool has_gpu_ = false;
};

// Samples in a thread of its own, so that nothing waits for a driver.
class BackgroundMonitor {
 public:
  BackgroundMonitor(std::unique_ptr<Monitor> monitor, std::chrono::milliseconds interval);
  ~BackgroundMonitor();
  BackgroundMonitor(const BackgroundMonitor&) = delete;
  BackgroundMonitor& operator=(const BackgroundMonitor&) = delete;
  // The latest sample, once.
  std::optional<Usage> take();

 private:
  void run(std::chrono::milliseconds interval);
  std::unique_ptr<Monitor> monitor_;
  std::mutex mutex_;
  std::condition_variable_any ends_;
  std::optional<Usage> latest_;
  std::atomic<bool> has_latest_ = false;  // looked at for each batch of events
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tandem
