// What the live executor promises of commands on a device's streams, and of a device that fails.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "core/base/errors.hpp"
#include "runtime/executors/keeping_device.hpp"
#include "tests/executors/executor_fixture.hpp"
#include "tests/executors/thread_device.hpp"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr Place device(std::int64_t offset) { return {0, Tier::Device, offset}; }
constexpr Place host(std::int64_t offset) { return {0, Tier::HostPinned, offset}; }

class StreamLanesTest : public ExecutorTest {
 protected:
  StreamLanesTest() { options_.device = device_; }
  std::shared_ptr<testing::ThreadDevice> device_ = std::make_shared<testing::ThreadDevice>();
};

TEST_F(StreamLanesTest, AValueGoesFromAWorkerThroughTheDeviceAndBack) {
  const ValueId made = append("test.fill", {}, {7});
  const ValueId changed = append("test.increment", {made}, {}, 0, true);
  const ValueId again = append("test.increment", {changed}, {}, 0, true);
  start();
  executor_->submit(std::vector{
      run(made, Engine::CpuOptimizer, {0, -1}), copy(Engine::H2D, host(0), device(0), kValueBytes, {0}),
      run(changed, Engine::Compute, {0, 8192, -1}, {1}), copy(Engine::D2H, device(8192), host(8192), kValueBytes, {2}),
      run(again, Engine::CpuOptimizer, {8192, 16384, -1}, {3})});
  const auto events = drain();
  ASSERT_EQ(events.size(), 5U);
  for (const auto& [id, event] : events) EXPECT_EQ(event.outcome, Outcome::Finished) << id << event.error;
  for (CommandId id = 1; id < 5; ++id) EXPECT_GE(events.at(id).started, events.at(id - 1).finished) << id;
  EXPECT_THAT(bytes_at(device(8192)), Each(8));
  EXPECT_THAT(bytes_at(host(16384)), Each(9));
}

TEST_F(StreamLanesTest, AWorkersFailureCancelsWhatTheDeviceWasToDoWithIt) {
  const ValueId failing = append("test.fail");
  const ValueId user = append("test.nothing", {failing});
  const ValueId other = append("test.fill", {}, {3});
  start();
  executor_->submit(
      std::vector{run(failing, Engine::CpuOptimizer, {0, -1}), copy(Engine::H2D, host(0), device(0), kValueBytes, {0}),
                  run(other, Engine::Compute, {8192, -1}), run(user, Engine::Compute, {0, 4096, -1}, {1})});
  const auto events = drain();
  EXPECT_EQ(events.at(0).outcome, Outcome::Failed);
  EXPECT_EQ(events.at(1).outcome, Outcome::Cancelled);
  EXPECT_EQ(events.at(2).outcome, Outcome::Finished);
  EXPECT_EQ(events.at(3).outcome, Outcome::Cancelled);
}

TEST_F(StreamLanesTest, ALostDeviceFailsAllInFlightAndAllThatFollows) {
  const ValueId value = append("test.fill", {}, {1});
  const ValueId after = append("test.nothing", {value});
  start();
  device_->lost = true;
  executor_->submit(std::vector{run(value, Engine::Compute, {0, -1}),
                                copy(Engine::D2H, device(0), host(0), kValueBytes, {0}),
                                run(after, Engine::CpuOptimizer, {0, 4096, -1}, {1})});
  const auto events = drain();
  EXPECT_EQ(events.at(0).outcome, Outcome::Failed);
  EXPECT_THAT(events.at(0).error, HasSubstr("fell off the bus"));
  EXPECT_NE(events.at(1).outcome, Outcome::Finished);
  EXPECT_EQ(events.at(2).outcome, Outcome::Cancelled);
  executor_->submit(std::vector{run(value, Engine::Compute, {0, -1})});
  EXPECT_EQ(drain().at(3).outcome, Outcome::Failed);
}

// A command that only waits is all that there is: were it cancelled, nobody would know why nothing goes on.
TEST_F(StreamLanesTest, ADeviceThatIsLostBeforeItHasAnythingFailsWhatWaits) {
  const ValueId value = append("test.fill", {}, {1});
  start();
  device_->no_marks = true;
  executor_->submit(std::vector{run(value, Engine::Compute, {0, -1})});
  const auto events = drain();
  EXPECT_EQ(events.at(0).outcome, Outcome::Failed);
  EXPECT_THAT(events.at(0).error, HasSubstr("no marks"));
}

TEST_F(StreamLanesTest, WhatComesAgainOnTheSameBytesIsRecordedOnceAndStartedAsAWhole) {
  const ValueId made = append("test.fill", {}, {7});
  const ValueId changed = append("test.increment", {made}, {}, 0, true);
  start();
  const auto step = [&](std::int64_t target) {
    const CommandId filled = next_id_;
    executor_->submit(
        std::vector{run(made, Engine::Compute, {0, -1}), run(changed, Engine::Compute, {0, target, -1}, {filled})});
    for (const auto& [id, event] : drain()) EXPECT_EQ(event.outcome, Outcome::Finished) << id << event.error;
    EXPECT_THAT(bytes_at(device(target)), Each(8));
  };
  step(8192);
  EXPECT_EQ(device_->recordings.made, 0) << "once tells nothing";
  for (int i = 0; i < 100; ++i) step(8192);
  EXPECT_EQ(device_->recordings.made, 1) << "of test.increment; test.fill may do something else each time";
  const int before = device_->recordings.run;
  step(16384);
  EXPECT_EQ(device_->recordings.run, before) << "elsewhere it is another launch";
  step(8192);
  EXPECT_EQ(device_->recordings.made, 1);
  EXPECT_EQ(device_->recordings.run, before + 1);
}

TEST_F(StreamLanesTest, ADeviceThatKeepsNothingLaunchesEachTime) {
  device_->recordings.possible = false;
  const ValueId made = append("test.fill", {}, {7});
  const ValueId changed = append("test.increment", {made}, {}, 0, true);
  start();
  executor_->submit(std::vector{run(made, Engine::Compute, {0, -1})});
  for (int i = 0; i < 100; ++i) executor_->submit(std::vector{run(changed, Engine::Compute, {0, 0, -1}, {0})});
  for (const auto& [id, event] : drain()) EXPECT_EQ(event.outcome, Outcome::Finished) << id << event.error;
  EXPECT_THAT(bytes_at(device(0)), Each(107));
}

TEST_F(StreamLanesTest, ThrottledCopiesTakeAtLeastTheirTime) {
  constexpr double kRate = 4e6;  // bytes/s: 4,096 bytes take 1.024 ms
  options_.copy_bytes_per_s[static_cast<std::size_t>(Engine::H2D)] = kRate;
  start();
  executor_->submit(std::vector{copy(Engine::H2D, host(0), device(0), kValueBytes),
                                copy(Engine::D2H, device(8192), host(8192), kValueBytes)});
  const auto events = drain();
  EXPECT_GE(events.at(0).finished.ns - events.at(0).started.ns,
            static_cast<std::int64_t>(static_cast<double>(kValueBytes) / kRate * 1e9) - 1'000);
  EXPECT_EQ(events.at(0).result, kValueBytes);
}

// As where launching an op's kernels takes longer than they do: the last launch waits for the first event.
TEST_F(StreamLanesTest, WhatIsDoneIsReportedWhileOtherKernelsAreLaunched) {
  constexpr int kCommands = 12;
  const ValueId value = append("test.fill", {}, {5});
  std::promise<void> first_seen;
  bool seen_before_the_last_launch = false;
  int launches = 0;
  device_->launching = [&, seen = first_seen.get_future().share()] {
    constexpr std::chrono::milliseconds kLaunch{10};
    constexpr std::chrono::seconds kTooLong{20};
    if (++launches < kCommands) return std::this_thread::sleep_for(kLaunch);
    seen_before_the_last_launch = seen.wait_for(kTooLong) == std::future_status::ready;
  };
  start();
  std::vector<Command> commands(kCommands);
  for (Command& command : commands) command = run(value, Engine::Compute, {0, -1});
  executor_->submit(commands);
  while (executor_->wait(kNever).events.empty()) {
  }
  first_seen.set_value();
  drain();
  EXPECT_TRUE(seen_before_the_last_launch);
}

TEST_F(StreamLanesTest, MayBeDestroyedWithWorkInFlight) {
  const ValueId value = append("test.fill", {}, {5});
  start();
  std::vector<Command> commands(100);
  for (Command& command : commands) command = run(value, Engine::Compute, {0, -1});
  executor_->submit(commands);
  executor_.reset();
  EXPECT_EQ(device_->pinned_bytes, 0);
}

TEST(KeepingDeviceTest, PinsOnceWhatRunsNeedOneAfterTheOther) {
  const auto device = std::make_shared<testing::ThreadDevice>();
  {
    KeepingDevice keeping(device);
    const std::byte* first = keeping.pinned_arena("host", 8192).at(0, 8192);
    {
      const Arena smaller = keeping.pinned_arena("host", 4096);
      EXPECT_EQ(smaller.at(0, 4096), first);
      EXPECT_EQ(smaller.size_bytes(), 4096);
      const Arena beside = keeping.pinned_arena("results", 64);
      EXPECT_FALSE(smaller.contains(beside.at(0, 64)));
      EXPECT_EQ(device->pinned_bytes, 8192 + 64);
    }
    const Arena larger = keeping.pinned_arena("host", 16384);
    EXPECT_EQ(device->pinned_bytes, 16384);  // the others were given up
  }
  EXPECT_EQ(device->pinned_bytes, 0);
}

}  // namespace
}  // namespace tandem
