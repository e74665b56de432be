// Every thread of a team does its share, once a loop.
#include "runtime/executors/thread_team.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <stdexcept>

namespace tandem {
namespace {

TEST(ThreadTeam, EachThreadDoesItsShareOncePerLoop) {
  constexpr int kThreads = 5, kLoops = 200;
  ThreadTeam team(kThreads);
  EXPECT_EQ(team.size(), kThreads);
  std::vector<int> calls(kThreads);
  std::vector<std::thread::id> ids(kThreads);
  for (int loop = 0; loop < kLoops; ++loop)
    team.run([&](int i) {
      ++calls[static_cast<std::size_t>(i)];
      ids[static_cast<std::size_t>(i)] = std::this_thread::get_id();
    });
  EXPECT_THAT(calls, ::testing::Each(kLoops));
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), static_cast<std::size_t>(kThreads));
  EXPECT_EQ(ids[0], std::this_thread::get_id());
}

TEST(ThreadTeam, SharedItemsAreDoneOnceHoweverManyThereAre) {
  ThreadTeam team(3);
  for (int items : {0, 1, 2, 3, 4, 100}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(items));
    team.share(items, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1) << items;
  }
}

TEST(ThreadTeam, AThreadThatIsHeldUpLeavesItsShareToOthers) {
  ThreadTeam team(2);
  std::atomic<int> done = 0;
  constexpr int kItems = 10;
  // The first item ends only when all others are done: by the other thread alone.
  team.share(kItems, [&](int i) {
    while (i == 0 && done < kItems - 1) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done, kItems);
}

TEST(ThreadTeam, WhatOneThrowsReachesTheCallerOnceAllAreDone) {
  ThreadTeam team(3);
  for (const int thrower : {0, 1, 2}) {
    std::atomic<int> ended = 0;
    EXPECT_THROW(team.run([&](int thread) {
      if (thread == thrower) throw std::runtime_error("no memory");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++ended;
    }),
                 std::runtime_error);
    EXPECT_EQ(ended, 2);
  }
  std::atomic<int> calls = 0;
  team.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3) << "the next loop is as if nothing had been";
}

TEST(ThreadTeam, AThreadKeepsItsTeamUntilItAsksForAnotherSize) {
  ThreadTeam* team = &ThreadTeam::mine(2);
  EXPECT_EQ(&ThreadTeam::mine(2), team);
  EXPECT_EQ(ThreadTeam::mine(3).size(), 3);
}

}  // namespace
}  // namespace tandem
