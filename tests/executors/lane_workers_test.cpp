// What becomes of commands whose worker cannot be had, or cannot be prepared.
#include "runtime/executors/lane_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "core/base/errors.hpp"
#include "runtime/executors/thread_team.hpp"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Task nothing(CommandId id) {
  Task task;
  task.id = id;
  task.what = [] { return std::string("nothing"); };
  task.work = [] { return std::int64_t{0}; };
  return task;
}

std::vector<Task> tasks(int count) {
  std::vector<Task> all;
  for (int i = 0; i < count; ++i) all.push_back(nothing(i));
  return all;
}

TEST(LaneWorkersTest, AWorkerThatCannotBePreparedFailsItsFirstCommandAndCancelsTheRest) {
  LaneWorkers workers(0, [](LaneIndex) { throw std::runtime_error("no such thread pool"); });
  workers.add(tasks(3));
  std::vector<Event> events;
  while (workers.in_flight())
    for (Event& event : workers.wait(kNever).events) events.push_back(std::move(event));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].outcome, Outcome::Failed);
  EXPECT_EQ(events[0].error, "no such thread pool");
  EXPECT_EQ(events[1].outcome, Outcome::Cancelled);
  EXPECT_EQ(events[2].outcome, Outcome::Cancelled);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose shadows have no limit
// While it lives, the system has no room for another thread's stack.
class NoRoomForThreads {
 public:
  NoRoomForThreads() {
    std::ifstream in("/proc/self/statm");
    rlim_t pages = 0;
    in >> pages;
    constexpr rlim_t kPage = 4096, kSome = rlim_t{2} << 20;
    EXPECT_EQ(::getrlimit(RLIMIT_AS, &before_), 0);
    const rlimit tight{pages * kPage + kSome, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  }
  ~NoRoomForThreads() { EXPECT_EQ(::setrlimit(RLIMIT_AS, &before_), 0); }
  NoRoomForThreads(const NoRoomForThreads&) = delete;
  NoRoomForThreads& operator=(const NoRoomForThreads&) = delete;

 private:
  rlimit before_{};
};

template <class Action>
void expect_refused(const Action& action) {
  try {
    action();
    FAIL() << "there was room";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot start a thread for"), HasSubstr("`ulimit -u`")));
  }
}

TEST(LaneWorkersTest, AThreadThatTheSystemRefusesIsAnErrorWithAdvice) {
  LaneWorkers workers(0, [](LaneIndex) {});
  std::vector<Task> one = tasks(1);
  const NoRoomForThreads full;
  expect_refused([&] { workers.add(std::move(one)); });
}

TEST(ThreadTeam, AThreadThatTheSystemRefusesIsAnErrorWithAdvice) {
  const NoRoomForThreads full;
  expect_refused([] { const ThreadTeam team(3); });
}
#endif

}  // namespace
}  // namespace tandem
