// This program's steady clock, which a test may put forward, or hold: what runs in it sees the clock of a machine that
// slept or was stopped. Waits end when they would by the real one.
#pragma once

#include <chrono>

namespace tandem::testing {

void put_clock_forward(std::chrono::nanoseconds by);
// While it lives, the clock stands still.
class HeldClock {
 public:
  HeldClock();
  ~HeldClock();
  HeldClock(const HeldClock&) = delete;
  HeldClock& operator=(const HeldClock&) = delete;
};

}  // namespace tandem::testing
