// The cores as one budget of what runs on CPU workers, and teams of threads that keep to theirs.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

#include "runtime/executors/core_teams.hpp"
#include "runtime/executors/lane_workers.hpp"

namespace tandem {
namespace {

Task claiming(CommandId id, LaneIndex lane, std::int32_t cores, std::function<void()> work) {
  Task task;
  task.id = id;
  task.lane = lane;
  task.cores = cores;
  task.what = [] { return std::string("work"); };
  task.work = [work = std::move(work)] {
    work();
    return std::int64_t{0};
  };
  return task;
}

std::vector<Event> drain(LaneWorkers& workers) {
  std::vector<Event> events;
  while (workers.in_flight())
    for (Event& event : workers.wait(kNever).events) events.push_back(std::move(event));
  return events;
}

TEST(CoreClaims, NeverComeToMoreThanThereAre) {
  constexpr std::int32_t kCores = 5;
  LaneWorkers workers(
      0, [](LaneIndex) {}, nullptr, kCores);
  std::atomic<int> claimed = 0, most = 0, done = 0;
  std::mt19937_64 random(7);
  std::vector<Task> tasks;
  for (CommandId id = 0; id < 400; ++id) {
    const auto lane = LaneIndex(id % 2 == 0 ? Engine::CpuOptimizer : Engine::CpuCompute, static_cast<int>(id % 4));
    const auto cores = static_cast<std::int32_t>(random() % 7);  // 6 is more than there are: all of them
    tasks.push_back(claiming(id, lane, cores, [&, held = std::min(cores, kCores)] {
      const int now = claimed += held;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::yield();
      claimed -= held;
      ++done;
    }));
  }
  workers.add(std::move(tasks));
  EXPECT_EQ(drain(workers).size(), 400u);
  EXPECT_EQ(done, 400);
  EXPECT_LE(most, kCores);
  EXPECT_GE(most, 2);
}

TEST(CoreClaims, WhoCameFirstIsNotPassedBySmallerClaims) {
  for (int round = 0; round < 50; ++round) {
    LaneWorkers workers(
        0, [](LaneIndex) {}, nullptr, 8);
    std::atomic<bool> go = false;
    std::atomic<int> order = 0, large = -1, small = -1;
    std::vector<Task> tasks;
    tasks.push_back(claiming(0, LaneIndex(Engine::CpuOptimizer, 0), 4, [&] {
      while (!go) std::this_thread::yield();
    }));
    tasks.push_back(claiming(1, Engine::CpuCompute, 8, [&] { large = order++; }));
    tasks.push_back(claiming(2, LaneIndex(Engine::CpuOptimizer, 1), 4, [&] { small = order++; }));
    workers.add(std::move(tasks));
    EXPECT_TRUE(workers.wait({workers.now().ns + 2'000'000}).events.empty());
    go = true;
    drain(workers);
    EXPECT_EQ(large, 0);
    EXPECT_EQ(small, 1);
  }
}

// Two that came to wait begin together where there are cores for both, whoever wakes first.
TEST(CoreClaims, AllThatFitGoOn) {
  for (int round = 0; round < 50; ++round) {
    LaneWorkers workers(
        0, [](LaneIndex) {}, nullptr, 8);
    std::atomic<bool> go = false;
    std::atomic<int> there = 0;
    const auto meet = [&] {
      ++there;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (there < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      if (there < 2) throw std::runtime_error("the other one did not begin");
    };
    std::vector<Task> tasks;
    tasks.push_back(claiming(0, Engine::CpuCompute, 8, [&] {
      while (!go) std::this_thread::yield();
    }));
    tasks.push_back(claiming(1, LaneIndex(Engine::CpuOptimizer, 0), 4, meet));
    tasks.push_back(claiming(2, LaneIndex(Engine::CpuOptimizer, 1), 4, meet));
    workers.add(std::move(tasks));
    workers.wait({workers.now().ns + 2'000'000});
    go = true;
    for (const Event& event : drain(workers)) EXPECT_EQ(event.outcome, Outcome::Finished) << event.error;
  }
}

TEST(CoreClaims, ACancelledTaskHoldsUpNobody) {
  LaneWorkers workers(
      0, [](LaneIndex) {}, nullptr, 2);
  std::vector<Task> tasks;
  tasks.push_back(claiming(0, Engine::CpuCompute, 2, [] { throw std::runtime_error("no"); }));
  tasks.push_back(claiming(1, Engine::CpuCompute, 2, [] {}));
  tasks.push_back(claiming(2, Engine::CpuOptimizer, 2, [] {}));
  workers.add(std::move(tasks));
  std::map<CommandId, Outcome> outcomes;
  for (const Event& event : drain(workers)) outcomes[event.command] = event.outcome;
  EXPECT_EQ(outcomes[0], Outcome::Failed);
  EXPECT_EQ(outcomes[1], Outcome::Cancelled);
  EXPECT_EQ(outcomes[2], Outcome::Finished);
}

TEST(CoreTeams, KeepThreadsToTheirOwnCores) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  HardwareProfile machine;
  machine.cores = CPU_COUNT(&before);
  machine.lanes[Engine::CpuOptimizer] = {2, 1};
  const CoreTeams teams(machine);
  const std::vector<int> first = teams.units_of(LaneIndex(Engine::CpuOptimizer, 0)),
                         second = teams.units_of(LaneIndex(Engine::CpuOptimizer, 1));
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(first, second);
  EXPECT_TRUE(teams.units_of(Engine::CpuCompute).empty()) << "wherever the process may";
  int count = 0, unit_is_set = 0;
  std::thread([&] {
    EXPECT_EQ(teams.pin(LaneIndex(Engine::CpuOptimizer, 1)), "");
    std::thread([&] {  // as a team's threads are started by the lane's
      cpu_set_t mine;
      sched_getaffinity(0, sizeof mine, &mine);
      count = CPU_COUNT(&mine);
      unit_is_set = CPU_ISSET(static_cast<std::size_t>(second.front()), &mine);
    })
        .join();
  }).join();
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(unit_is_set);
}

}  // namespace
}  // namespace tandem
