// NVIDIA's management library, found while running: a build needs none, and a machine without a GPU has none.
#include <dlfcn.h>

#include <array>
#include <string>
#include <utility>

#include "runtime/monitor/monitor.hpp"

namespace tandem {
namespace {

// As nvml.h declares them (NVML API reference; ABI stable since NVML 5).
using Device = void*;
struct Utilization {
  unsigned gpu, memory;  // per cent
};
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;
constexpr unsigned kDeviceSends = 0, kDeviceReceives = 1;  // nvmlPcieUtilCounter_t
constexpr unsigned kStreamingClock = 1;                    // nvmlClockType_t

class Library {
 public:
  Library() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  template <class Function>
  Function* find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
};

class GpuUsage final : public UsageSource {
 public:
  GpuUsage() {
    const auto init = library_.find<int()>("nvmlInit_v2");
    if (init == nullptr || init() != kSuccess) return;
    shut_down_ = library_.find<int()>("nvmlShutdown");
    const auto count = library_.find<int(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto handle = library_.find<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    unsigned devices = 0;
    if (count == nullptr || handle == nullptr || count(&devices) != kSuccess) return;
    for (unsigned i = 0; i < devices; ++i)
      if (Device device = nullptr; handle(i, &device) == kSuccess) devices_.push_back(device);
  }
  ~GpuUsage() override {
    if (shut_down_ != nullptr) shut_down_();
  }
  GpuUsage(const GpuUsage&) = delete;
  GpuUsage& operator=(const GpuUsage&) = delete;
  bool is_there() const { return !devices_.empty(); }

  void sample(Usage& usage) override {
    for (std::size_t i = 0; i < devices_.size(); ++i) sample(devices_[i], "gpu" + std::to_string(i) + ".", usage);
  }

 private:
  // What a device does not tell is left out.
  void sample(Device device, const std::string& prefix, Usage& usage) const {
    const auto note = [&](const char* name, unsigned long long value) {
      usage.figures[prefix + name] = static_cast<std::int64_t>(value);
    };
    if (Utilization use{}; utilization_ != nullptr && utilization_(device, &use) == kSuccess)
      note("busy_ppm", use.gpu * 10'000ULL);
    if (Memory memory{}; memory_ != nullptr && memory_(device, &memory) == kSuccess) {
      note("memory_bytes", memory.total);
      note("memory_used_bytes", memory.used);
    }
    for (const auto& [counter, name] :
         {std::pair{kDeviceReceives, "pcie_up_bytes_per_s"}, {kDeviceSends, "pcie_down_bytes_per_s"}})
      if (unsigned kilobytes = 0; pcie_ != nullptr && pcie_(device, counter, &kilobytes) == kSuccess)
        note(name, kilobytes * 1000ULL);
    if (unsigned milliwatts = 0; power_ != nullptr && power_(device, &milliwatts) == kSuccess)
      note("power_mw", milliwatts);
    if (unsigned megahertz = 0; clock_ != nullptr && clock_(device, kStreamingClock, &megahertz) == kSuccess)
      note("clock_mhz", megahertz);
  }

  Library library_;
  int (*shut_down_)() = nullptr;
  std::vector<Device> devices_;
  int (*utilization_)(Device, Utilization*) = library_.find<int(Device, Utilization*)>("nvmlDeviceGetUtilizationRates");
  int (*memory_)(Device, Memory*) = library_.find<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  int (*pcie_)(Device, unsigned,
               unsigned*) = library_.find<int(Device, unsigned, unsigned*)>("nvmlDeviceGetPcieThroughput");
  int (*power_)(Device, unsigned*) = library_.find<int(Device, unsigned*)>("nvmlDeviceGetPowerUsage");
  int (*clock_)(Device, unsigned,
                unsigned*) = library_.find<int(Device, unsigned, unsigned*)>("nvmlDeviceGetClockInfo");
};

}  // namespace

std::unique_ptr<UsageSource> gpu_usage() {
  auto gpu = std::make_unique<GpuUsage>();
  if (!gpu->is_there()) return nullptr;
  return gpu;
}

}  // namespace tandem
