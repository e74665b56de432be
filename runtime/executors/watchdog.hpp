// Ends a run in which nothing finishes any more, whatever its threads wait for: a thread of its own looks at what the
// run waits for. Time in which it could not look, as where the process was stopped (Ctrl-Z), the machine slept or its
// clock was put forward, was no time for the run either, and does not count. Must not know how a process ends, or who
// asks it to.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/executors/standstill.hpp"

namespace tandem {

struct WatchdogOptions {
  std::chrono::nanoseconds limit = std::chrono::seconds(60);  // that nothing may finish, beyond what commands may take
  // Whether the run has been asked to end; null: never. From then on, something must finish every `grace`, and where
  // nothing is saved (`saves`), all must be over after that.
  std::function<bool()> interrupted;
  std::chrono::nanoseconds grace = std::chrono::seconds(6);
  bool saves = false;
  // Which others have ended that the run cannot do without; "": none, null: there are none. Where nothing finishes for
  // a moment, the run waits for them in vain: `bereft` is called instead of `expired`, with that and what is waited
  // for.
  std::function<std::string()> lost;
  std::function<void(const std::string& waits, const std::string& lost)> bereft;
  // Called once, from the watchdog's thread, with a line for each thing that is waited for; ends the process.
  std::function<void(const std::string& waits, bool interrupted)> expired;
};

class Watchdog {
 public:
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // What runs, asked for now and then from the watchdog's thread; none where nothing is in flight.
  using Probe = std::function<std::optional<Standstill>()>;
  // Null: there is no run to look at. Returns once the one before is no longer looked at.
  void watch(Probe probe);

  // While it lives, its thread waits for something that has no lane: "rank 2, to begin".
  class Wait {
   public:
    Wait(Watchdog* watchdog, std::string what);  // null: nobody looks
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Watchdog* watchdog_;
  };

  std::chrono::nanoseconds limit() const { return options_.limit; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Gap {
    Clock::time_point end;
    Clock::duration length;
  };
  void serve();
  // What is waited for, if for too long, or in vain.
  struct Expiry {
    std::string waits, lost;
  };
  std::optional<Expiry> look(Clock::time_point now);
  void note_gap(Clock::time_point now);
  // From `begin` to `now`, without gaps.
  Clock::duration watched(Clock::time_point begin, Clock::time_point now) const;

  const WatchdogOptions options_;
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  Probe probe_;
  std::string waits_for_;  // "": nothing
  Clock::time_point waits_since_;
  std::optional<Clock::time_point> interrupted_at_;
  Clock::time_point last_look_ = Clock::now();
  std::deque<Gap> gaps_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
