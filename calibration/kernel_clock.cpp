#include "calibration/kernel_clock.hpp"

#include <chrono>
#include <thread>

#include "runtime/executors/workspace.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// For the temporaries and results of one call: of the largest attention, some dozens of MiB.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{1} << 30;

double since_ns(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// On the calling thread.
class HostClock final : public KernelClock {
 public:
  explicit HostClock(int threads) { set_thread_count(threads); }
  void prepare(const std::function<void()>& work) override { work(); }
  double time_ns(const std::function<void()>& call, int calls, const std::function<void()>&) override {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    return since_ns(start) / calls;
  }
};

// Temporaries come from memory of the device that is there already, as in a body: asking the driver would stop it.
class DeviceClock final : public KernelClock {
 public:
  explicit DeviceClock(Device& device)
      : workspace_(device.device_arena(kWorkspaceBytes)), streams_(device.open_streams()) {
    streams_->bind([start = Clock::now()] { return TimeNs{static_cast<std::int64_t>(since_ns(start))}; });
  }
  void prepare(const std::function<void()>& work) override {
    streams_->run(Engine::Compute, work);
    wait(streams_->mark(Engine::Compute));
  }
  double time_ns(const std::function<void()>& call, int calls, const std::function<void()>& ahead) override {
    run(ahead, 1);
    run(call, 1);
    const Streams::Mark begin = streams_->mark(Engine::Compute);
    run(call, calls);
    const Streams::Mark end = streams_->mark(Engine::Compute);
    const TimeNs finished = wait(end), started = wait(begin);
    return static_cast<double>(finished.ns - started.ns) / calls;
  }

 private:
  void run(const std::function<void()>& call, int calls) {
    streams_->run(Engine::Compute, [this, &call, calls] {
      const WorkspaceScope scope(workspace_.at(0, kWorkspaceBytes), kWorkspaceBytes, Processor::Device);
      for (int i = 0; i < calls; ++i) call();
    });
  }
  TimeNs wait(Streams::Mark mark) {
    while (!streams_->reached(mark)) std::this_thread::yield();
    const TimeNs time = streams_->time_of(mark);
    streams_->drop(mark);
    return time;
  }

  Arena workspace_;
  std::unique_ptr<Streams> streams_;  // before the workspace is gone, its work is done
};

}  // namespace

std::unique_ptr<KernelClock> open_clock(const KernelSite& site) {
  if (site.device) return std::make_unique<DeviceClock>(*site.device);
  return std::make_unique<HostClock>(site.threads);
}

}  // namespace tandem
