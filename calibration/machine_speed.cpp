#include "runtime/machine_speed.hpp"

#include "calibration/probe.hpp"
#include "calibration/triad_times.hpp"
#include "calibration/workbench.hpp"
#include "core/base/errors.hpp"

namespace tandem {

Probe probe_now(const std::shared_ptr<Device>& device) { return run_probe(probe_of(device)); }

std::optional<double> update_rate_now(std::int32_t cores, Device* device) {
  constexpr std::int64_t kBytes = 2'800'000'000;
  constexpr int kRepeats = 15;
  if (device == nullptr) return std::nullopt;
  try {
    return time_updates({Workbench::cpu_threads(cores)}, device->pinned_arena("updates", kBytes), kRepeats)
        .front()
        .median;
  } catch (const DeviceError&) {
    return std::nullopt;
  }
}

}  // namespace tandem
