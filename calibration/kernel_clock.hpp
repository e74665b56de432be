// Runs calls of LibTorch where kernels are timed, and says how long they took: on a thread by the host's clock, or in a
// device's stream by its marks. Must not know what is called.
#pragma once

#include <functional>
#include <memory>

#include "calibration/kernel_times.hpp"

namespace tandem {

class KernelClock {
 public:
  virtual ~KernelClock() = default;
  // Runs `work` and waits for it: allocations, which are not timed.
  virtual void prepare(const std::function<void()>& work) = 0;
  // Nanoseconds a call, over `calls` of them. A device is kept busy with `ahead` first, which is not timed, while the
  // host hands over the calls: theirs is then the device's time alone.
  virtual double time_ns(const std::function<void()>& call, int calls, const std::function<void()>& ahead) = 0;
};

// Throws DeviceError, as all of its methods do, when the device does.
std::unique_ptr<KernelClock> open_clock(const KernelSite& site);

}  // namespace tandem
