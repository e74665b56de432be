// What goes wrong in a run, and when: the k-th call at one of its interfaces fails, hangs or comes late, and by a seed
// any call may come a little late. Decorators (faulty_device.hpp, faulty_collective.hpp) ask it. Must not know what
// they decorate.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

#include "core/base/errors.hpp"
#include "tests/executors/digest_bodies.hpp"

namespace tandem::testing {

enum class Site : std::uint8_t {
  DeviceMemory,  // an arena of the device
  PinnedMemory,
  Streams,     // opening them
  Copy,        // handed to a stream
  Launch,      // of a body's kernels, or of what was recorded
  Mark,        // a point in a stream
  Reached,     // whether the device came to it
  Collective,  // as a rank begins one
  Disk,        // a call of the scratch file
  Command,     // as its lane begins it
  Body,        // all that it writes is written
  Count
};
inline constexpr auto kSiteCount = static_cast<std::size_t>(Site::Count);
inline const char* name_of(Site site) {
  static constexpr const char* kNames[] = {"device memory", "pinned memory", "streams",   "copy",    "launch", "mark",
                                           "reached",       "collective",    "disk call", "command", "body"};
  return kNames[static_cast<std::size_t>(site)];
}

enum class Fault : std::uint8_t { None, Fail, FailWithoutText, Hang, Late, Interrupt };

struct Plan {
  Fault fault = Fault::None;
  Site site = Site::Command;
  std::int64_t k = 0;                       // the call that it strikes, counted from 0
  std::uint64_t delay_seed = 0;             // 0: no other call is late
  std::chrono::microseconds most_delay{0};  // of those
  int late_in = 4;                          // one call in so many
  friend std::ostream& operator<<(std::ostream& out, const Plan& plan) {
    static constexpr const char* kNames[] = {"nothing", "fails",   "fails without a text",
                                             "hangs",   "is late", "interrupts"};
    return out << name_of(plan.site) << ' ' << plan.k << ' ' << kNames[static_cast<int>(plan.fault)] << ", delays "
               << plan.delay_seed << " of up to " << plan.most_delay.count() << " us";
  }
};

class Faults {
 public:
  explicit Faults(const Plan& plan = {}) : plan_(plan) {}

  // Called by whoever is at a site, from any thread. Throws for a failure, and for a hang once it is given up.
  void pass(Site site) {
    if (strikes(site)) strike();
  }
  // The same, as a call of the scratch file has it.
  std::int32_t disk(std::int32_t result) {
    try {
      pass(Site::Disk);
    } catch (...) {
      return -EIO;
    }
    return result;
  }
  // The run is over: what a test reads of it is read as it is.
  void rest() { resting_ = true; }
  // What hangs ends, with an error.
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    news_.notify_all();
  }
  bool struck() const { return struck_; }
  std::int64_t calls(Site site) const { return calls_[static_cast<std::size_t>(site)]; }
  std::atomic<bool>& interrupt() { return interrupt_; }

 private:
  bool strikes(Site site) {
    if (resting_) return false;
    const std::int64_t call = calls_[static_cast<std::size_t>(site)]++;
    if (plan_.delay_seed != 0 && plan_.most_delay.count() > 0) {
      const std::uint64_t draw = mix(mix(plan_.delay_seed + static_cast<std::uint64_t>(site)) +
                                     static_cast<std::uint64_t>(call) * 0x9e3779b97f4a7c15ULL);
      const auto late_in = static_cast<std::uint64_t>(plan_.late_in);
      const auto most = static_cast<std::uint64_t>(plan_.most_delay.count()) + 1;
      if (draw % late_in == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / late_in % most));
    }
    return plan_.fault != Fault::None && site == plan_.site && call == plan_.k;
  }
  void strike() {
    struck_ = true;
    constexpr std::chrono::milliseconds kLate{50};
    switch (plan_.fault) {
      case Fault::Fail:
        throw DeviceError(std::string("planned: ") + name_of(plan_.site) + " " + std::to_string(plan_.k));
      case Fault::FailWithoutText:
        throw 7;  // NOLINT(hicpp-exception-baseclass): what a library may throw
      case Fault::Hang: {
        std::unique_lock lock(mutex_);
        news_.wait(lock, [this] { return given_up_; });
        throw DeviceError("planned: given up");
      }
      case Fault::Late:
        return std::this_thread::sleep_for(kLate);
      case Fault::Interrupt:
        interrupt_ = true;
        return;
      case Fault::None:
        return;
    }
  }

  const Plan plan_;
  std::array<std::atomic<std::int64_t>, kSiteCount> calls_{};
  std::atomic<bool> struck_ = false, interrupt_ = false, resting_ = false;
  std::mutex mutex_;
  std::condition_variable news_;
  bool given_up_ = false;
};

}  // namespace tandem::testing
