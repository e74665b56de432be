#include "runtime/executors/watchdog.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/executors/start_thread.hpp"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};
// A peer that has ended is missed by then, where connections tell; a GPU would wait for it for good.
constexpr std::chrono::seconds kBereft{3};
// Between two looks on a busy machine. What is more is a gap; and it counts as this much, so that the watchdog of a
// machine that hardly runs at all is late, but comes.
constexpr std::chrono::seconds kLate{1};
// Whoever waits for longer than so many gaps has been waiting for long in any case.
constexpr std::size_t kMostGaps = 1000;

}  // namespace

Watchdog::Watchdog(WatchdogOptions options)
    : options_(std::move(options)), thread_(start_thread("the watchdog", [this] { serve(); })) {}

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
    std::optional<Expiry> expiry;
    try {
      expiry = look(Clock::now());
    } catch (const std::bad_alloc&) {  // there may be memory at the next look
    }
    if (!expiry) continue;
    const bool interrupted = interrupted_at_.has_value();
    lock.unlock();
    if (expiry->lost.empty())
      options_.expired(expiry->waits, interrupted);
    else
      options_.bereft(expiry->waits, expiry->lost);
    return;
  }
}

void Watchdog::note_gap(Clock::time_point now) {
  const Clock::duration since = now - std::exchange(last_look_, now);
  if (since <= kLate) return;
  gaps_.push_back({now, since - kLate});
  if (gaps_.size() > kMostGaps) gaps_.pop_front();
}

Watchdog::Clock::duration Watchdog::watched(Clock::time_point begin, Clock::time_point now) const {
  Clock::duration time = now - begin;
  for (const Gap& gap : gaps_)
    if (gap.end > begin) time -= std::min(gap.length, gap.end - begin);
  return time;
}

std::optional<Watchdog::Expiry> Watchdog::look(Clock::time_point now) {
  note_gap(now);
  if (!interrupted_at_ && options_.interrupted && options_.interrupted()) interrupted_at_ = now;
  const std::optional<Standstill> standstill = probe_ ? probe_() : std::nullopt;
  std::chrono::nanoseconds quiet{}, allowance{}, saving{};
  std::string text;
  if (!waits_for_.empty()) {
    quiet = watched(waits_since_, now);
    text = "  this process waits for " + waits_for_ + "\n";
  } else if (standstill) {
    quiet = watched(Clock::now() - std::chrono::duration_cast<Clock::duration>(standstill->quiet), now);
    allowance = standstill->allowance;
    saving = standstill->saving;
  }
  if (standstill) text += text_of(*standstill);
  if (quiet >= options_.limit + allowance) return Expiry{text, ""};
  if (options_.lost && quiet >= kBereft)
    if (std::string lost = options_.lost(); !lost.empty()) return Expiry{text, std::move(lost)};
  if (!interrupted_at_) return std::nullopt;
  const std::chrono::nanoseconds asked = watched(*interrupted_at_, now);
  const bool stands_still = std::min(asked, quiet) >= options_.grace + saving;
  if (stands_still || (!options_.saves && asked >= options_.grace)) return Expiry{text, ""};
  return std::nullopt;
}

}  // namespace tandem
