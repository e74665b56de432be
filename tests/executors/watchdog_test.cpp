// What a watchdog ends, and what it lets go on.
#include "runtime/executors/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "runtime/executors/lane_workers.hpp"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Lanes of which some hang until the test ends, under a watchdog that only notes that it has expired.
class WatchdogTest : public ::testing::Test {
 protected:
  ~WatchdogTest() override {
    watchdog_.reset();
    hang_.set_value();
  }
  void start(std::chrono::nanoseconds limit, bool saves = false) {
    WatchdogOptions options;
    options.limit = limit;
    options.grace = 100ms;
    options.saves = saves;
    options.interrupted = [this] { return interrupted_.load(); };
    options.lost = [this] { return lost_.load() ? std::string("rank 1 was ended by signal 9") : ""; };
    options.bereft = [this](const std::string& waits, const std::string& lost) {
      expired_.set_value({lost + ": " + waits, false});
    };
    options.expired = [this](const std::string& waits, bool interrupted) { expired_.set_value({waits, interrupted}); };
    watchdog_.emplace(std::move(options));
    watchdog_->watch([this] { return workers_.standstill(); });
  }
  Task task(CommandId id, Engine engine, WaitFor wait_for, bool hangs, std::chrono::nanoseconds allowance = 0ns) {
    Task task;
    task.id = id;
    task.lane = engine;
    task.wait_for = std::move(wait_for);
    task.what = [id] { return "work " + std::to_string(id); };
    task.allowance = allowance;
    task.work = [this, hangs] {
      if (hangs) until_.wait();
      return std::int64_t{0};
    };
    return task;
  }
  void add(Task task) {
    std::vector<Task> tasks;
    tasks.push_back(std::move(task));
    workers_.add(std::move(tasks));
  }
  bool expires(std::chrono::nanoseconds within) { return result_.wait_for(within) == std::future_status::ready; }

  std::promise<void> hang_;
  std::shared_future<void> until_ = hang_.get_future().share();
  std::promise<std::pair<std::string, bool>> expired_;
  std::future<std::pair<std::string, bool>> result_ = expired_.get_future();
  std::atomic<bool> interrupted_ = false, lost_ = false;
  LaneWorkers workers_{0, [](LaneIndex) {}};
  std::optional<Watchdog> watchdog_;
};

TEST_F(WatchdogTest, SaysWhatEachLaneWaitsFor) {
  start(200ms);
  add(task(0, Engine::Collective, {}, /*hangs=*/true));
  add(task(1, Engine::Compute, {0}, false));
  add(task(2, Engine::Loader, {}, /*hangs=*/true));
  ASSERT_TRUE(expires(20s));
  const auto [waits, interrupted] = result_.get();
  EXPECT_FALSE(interrupted);
  EXPECT_THAT(waits,
              AllOf(HasSubstr("lane collective: command 0, work 0, waits for the other ranks\n"),
                    HasSubstr("lane compute: command 1, work 1, waits for command 0, work 0 in lane collective\n"),
                    HasSubstr("lane loader: command 2, work 2, has begun and has not ended\n")));
}

// What waits for a rank that has ended would wait for good; the limit is for what may still come.
TEST_F(WatchdogTest, WaitsForNobodyWhoHasEnded) {
  start(1h);
  add(task(0, Engine::Collective, {}, /*hangs=*/true));
  EXPECT_FALSE(expires(300ms));
  lost_ = true;
  ASSERT_TRUE(expires(20s));
  EXPECT_THAT(result_.get().first,
              AllOf(HasSubstr("rank 1 was ended by signal 9"), HasSubstr("waits for the other ranks")));
}

TEST_F(WatchdogTest, LetsWhatEndsAndWhatIsSlowGoOn) {
  start(300ms);
  add(task(0, Engine::Compute, {}, /*hangs=*/true, /*allowance=*/1h));
  EXPECT_FALSE(expires(700ms)) << "the command may take an hour";
}

TEST_F(WatchdogTest, ACollectiveMayWaitForWhateverAnotherRankDoes) {
  start(300ms);
  add(task(0, Engine::Compute, {}, false, /*allowance=*/1h));
  add(task(1, Engine::Collective, {}, /*hangs=*/true));
  EXPECT_FALSE(expires(700ms));
}

TEST_F(WatchdogTest, HasNothingToSayWhereNothingIsInFlight) {
  start(100ms);
  add(task(0, Engine::Compute, {}, false));
  EXPECT_FALSE(expires(400ms));
}

TEST_F(WatchdogTest, AnInterruptWaitsNoLongerThanItsGrace) {
  for (const bool saves : {false, true}) {
    expired_ = {};
    result_ = expired_.get_future();
    interrupted_ = false;
    start(1h, saves);
    if (!saves) add(task(0, Engine::Compute, {}, /*hangs=*/true, /*allowance=*/1h));
    EXPECT_FALSE(expires(250ms)) << "nobody has asked it to end";
    interrupted_ = true;
    ASSERT_TRUE(expires(20s)) << saves;
    EXPECT_TRUE(result_.get().second);
  }
}

TEST_F(WatchdogTest, LooksAtWaitsThatHaveNoLane) {
  start(150ms);
  const Watchdog::Wait wait(&*watchdog_, "rank 1, to begin");
  ASSERT_TRUE(expires(20s));
  EXPECT_THAT(result_.get().first, HasSubstr("this process waits for rank 1, to begin"));
}

}  // namespace
}  // namespace tandem
