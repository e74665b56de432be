// A clock that jumps, as on a machine that slept, or of a process that was stopped for an hour, and one that stands
// still: neither is taken for a run that hangs, and no bit changes.
#include "tests/faults/clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "runtime/executors/watchdog.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/faults/live_run.hpp"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::Faults;
using testing::HeldClock;
using testing::LiveResult;

constexpr auto kHour = 1h;

// A standstill since the watchdog began to look, as one long command makes it.
class ClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::kSanitized) GTEST_SKIP() << "the calls of the clock are the sanitizer's";
  }
  void start(std::chrono::nanoseconds limit) {
    WatchdogOptions options;
    options.limit = limit;
    options.expired = [this](const std::string&, bool) { expired_.set_value(); };
    watchdog_.emplace(options);
    watchdog_->watch([began = std::chrono::steady_clock::now()] {
      Standstill standstill;
      standstill.quiet = std::chrono::steady_clock::now() - began;
      standstill.lanes.push_back({Engine::Compute, 0, "work", true, kNoCommand, ""});
      return standstill;
    });
  }
  // By sleeps, which go by the real clock.
  bool expires(std::chrono::milliseconds within) {
    for (; within.count() > 0 && result_.wait_for(0s) != std::future_status::ready; within -= 10ms)
      std::this_thread::sleep_for(10ms);
    return result_.wait_for(0s) == std::future_status::ready;
  }
  std::promise<void> expired_;
  std::future<void> result_ = expired_.get_future();
  std::optional<Watchdog> watchdog_;
};

TEST_F(ClockTest, AnHourInWhichNothingRanIsNoHang) {
  start(5s);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(expires(200ms));
    testing::put_clock_forward(kHour);
  }
  EXPECT_FALSE(expires(300ms)) << "a process that was stopped for three hours is given up";
}

TEST_F(ClockTest, AHangIsOneAllTheSame) {
  start(2s);
  testing::put_clock_forward(kHour);
  EXPECT_TRUE(expires(10s));
}

TEST_F(ClockTest, ARunWhoseClockJumpsAndStandsStillComesToTheSameBits) {
  Scenario scenario = testing::tiny_gpt("zero_infinity", testing::kTight);
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 << 10;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 1 << 20;
  scenario.steps = 3;
  scenario.limits.h2d_bytes_per_s = 1e8;  // copies that go by the clock
  Faults none;
  const LiveResult clean = run_live(scenario, none, {});
  for (const bool streams : {false, true}) {
    std::atomic<bool> done = false;
    std::thread meddler([&done] {
      while (!done) {
        testing::put_clock_forward(kHour);
        std::this_thread::sleep_for(5ms);
        const HeldClock held;
        std::this_thread::sleep_for(5ms);
      }
    });
    Faults faults({.delay_seed = 3, .most_delay = 2ms});
    testing::LiveRun run{.streams = streams};
    run.limit = 20s;
    const LiveResult result = run_live(scenario, faults, run);
    done = true;
    meddler.join();
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.waits, "");
    EXPECT_EQ(result.digests, clean.digests);
  }
}

}  // namespace
}  // namespace tandem
