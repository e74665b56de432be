#include "runtime/monitor/monitor.hpp"

#include <utility>

namespace tandem {

Monitor::Monitor() {
  if (auto gpu = gpu_usage()) {
    has_gpu_ = true;
    sources_.push_back(std::move(gpu));
  }
  sources_.push_back(host_usage());
  if (auto traffic = memory_traffic()) sources_.push_back(std::move(traffic));
}

Usage Monitor::sample() {
  Usage usage;
  for (const auto& source : sources_) source->sample(usage);
  return usage;
}

BackgroundMonitor::BackgroundMonitor(std::unique_ptr<Monitor> monitor, std::chrono::milliseconds interval)
    : monitor_(std::move(monitor)), thread_([this, interval] { run(interval); }) {}

BackgroundMonitor::~BackgroundMonitor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

std::optional<Usage> BackgroundMonitor::take() {
  if (!has_latest_.exchange(false)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return std::exchange(latest_, std::nullopt);
}

void BackgroundMonitor::run(std::chrono::milliseconds interval) {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    Usage usage = monitor_->sample();
    lock.lock();
    latest_ = std::move(usage);
    has_latest_ = true;
    ends_.wait_for(lock, interval, [this] { return ending_; });
  }
}

}  // namespace tandem
