// The calls that std::chrono::steady_clock and timed waits make, in place of the C library's.
#include "tests/faults/clock.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <ctime>

namespace {

constexpr std::int64_t kNsPerS = 1'000'000'000;

std::atomic<std::int64_t> forward_ns{0};  // of the real clock
std::atomic<std::int64_t> held_at_ns{0};  // 0: it goes on

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::int64_t real_ns() {
  static const auto kCall = real<int (*)(clockid_t, timespec*)>("clock_gettime");
  timespec now{};
  kCall(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerS + now.tv_nsec;
}

[[maybe_unused]] timespec spec_of(std::int64_t ns) { return {ns / kNsPerS, ns % kNsPerS}; }

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which put theirs there
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto kCall = real<int (*)(clockid_t, timespec*)>("clock_gettime");
  if (clock != CLOCK_MONOTONIC) return kCall(clock, now);
  const std::int64_t held = held_at_ns;
  *now = spec_of(held != 0 ? held : real_ns() + forward_ns);
  return 0;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  static const auto kCall =
      real<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  if (clock != CLOCK_MONOTONIC) return kCall(condition, mutex, clock, until);
  // As long from now as it was to be when it was asked for.
  const std::int64_t held = held_at_ns, now = held != 0 ? held : real_ns() + forward_ns;
  const timespec real_until = spec_of(until->tv_sec * kNsPerS + until->tv_nsec - now + real_ns());
  return kCall(condition, mutex, clock, &real_until);
}

#endif

namespace tandem::testing {

void put_clock_forward(std::chrono::nanoseconds by) { forward_ns += by.count(); }

HeldClock::HeldClock() { held_at_ns = real_ns() + forward_ns; }
HeldClock::~HeldClock() {
  forward_ns = held_at_ns - real_ns();  // it goes on from where it stood
  held_at_ns = 0;
}

}  // namespace tandem::testing
