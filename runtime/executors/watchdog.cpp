#include "runtime/executors/watchdog.hpp"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};

}  // namespace

Watchdog::Watchdog(WatchdogOptions options) : options_(std::move(options)), thread_([this] { serve(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::watch(Probe probe) {
  const std::lock_guard lock(mutex_);
  probe_ = std::move(probe);
}

Watchdog::Wait::Wait(Watchdog* watchdog, std::string what) : watchdog_(watchdog) {
  if (watchdog_ == nullptr) return;
  const std::lock_guard lock(watchdog_->mutex_);
  watchdog_->waits_for_ = std::move(what);
  watchdog_->waits_since_ = Clock::now();
}

Watchdog::Wait::~Wait() {
  if (watchdog_ == nullptr) return;
  const std::lock_guard lock(watchdog_->mutex_);
  watchdog_->waits_for_.clear();
}

void Watchdog::serve() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLookEvery, [this] { return stopping_; })) {
    const std::optional<std::string> waits = look(Clock::now());
    if (!waits) continue;
    const bool interrupted = interrupted_at_.has_value();
    lock.unlock();
    options_.expired(*waits, interrupted);
    return;
  }
}

std::optional<std::string> Watchdog::look(Clock::time_point now) {
  if (!interrupted_at_ && options_.interrupted && options_.interrupted()) interrupted_at_ = now;
  const std::optional<Standstill> standstill = probe_ ? probe_() : std::nullopt;
  std::chrono::nanoseconds quiet{}, allowance{}, saving{};
  std::string text;
  if (!waits_for_.empty()) {
    quiet = now - waits_since_;
    text = "  this process waits for " + waits_for_ + "\n";
  } else if (standstill) {
    quiet = standstill->quiet;
    allowance = standstill->allowance;
    saving = standstill->saving;
  }
  if (standstill) text += text_of(*standstill);
  if (quiet >= options_.limit + allowance) return text;
  if (!interrupted_at_) return std::nullopt;
  const std::chrono::nanoseconds asked = now - *interrupted_at_;
  const bool stands_still = std::min(asked, quiet) >= options_.grace + saving;
  if (stands_still || (!options_.saves && asked >= options_.grace)) return text;
  return std::nullopt;
}

}  // namespace tandem
