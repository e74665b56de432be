// What the CPU executor promises of one command: places, parts, copies, failures, workspaces.
#include <gmock/gmock.h>

#include <thread>

#include "core/base/errors.hpp"
#include "tests/executors/executor_fixture.hpp"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr Place device(std::int64_t offset) { return {0, Tier::Device, offset}; }
constexpr Place host(std::int64_t offset) { return {0, Tier::HostPinned, offset}; }
constexpr Place pageable(std::int64_t offset) { return {0, Tier::HostPageable, offset}; }
constexpr Place disk(std::int64_t offset) { return {0, Tier::Disk, offset}; }

TEST_F(ExecutorTest, AValueTravelsThroughAllTiersAndBack) {
  const ValueId value = append("test.fill", {}, {7});
  start();
  const std::vector<Command> commands = {
      run(value, Engine::Compute, {64, -1}),
      copy(Engine::D2H, device(64), host(8192), kValueBytes, {0}),
      copy(Engine::DiskWrite, host(8192), disk(4096), kValueBytes, {1}),
      copy(Engine::DiskRead, disk(4096), pageable(0), kValueBytes, {2}),
      copy(Engine::H2D, pageable(0), device(16384), kValueBytes, {3}),
  };
  executor_->submit(commands);
  const auto events = drain();
  ASSERT_EQ(events.size(), commands.size());
  for (const auto& [id, event] : events) EXPECT_EQ(event.outcome, Outcome::Finished) << id << event.error;
  EXPECT_EQ(events.at(0).result, 7);
  EXPECT_EQ(events.at(1).result, kValueBytes);
  for (Place place : {device(64), host(8192), disk(4096), pageable(0), device(16384)})
    EXPECT_THAT(bytes_at(place), Each(7)) << name_of(place.tier);
  EXPECT_THAT(bytes_at(device(64 + kValueBytes), 64), Each(0)) << "bytes beside the value changed";
}

TEST_F(ExecutorTest, CpuLanesTakeTheirOperandsFromTheHost) {
  const ValueId value = append("test.fill", {}, {9});
  start();
  executor_->submit(std::vector{run(value, Engine::CpuOptimizer, {4096, -1})});
  drain();
  EXPECT_THAT(bytes_at(host(4096)), Each(9));
  EXPECT_THAT(bytes_at(device(4096)), Each(0));
}

TEST_F(ExecutorTest, APartOfADivisibleOpTouchesItsRangeOnly) {
  const ValueId input = append("test.fill", {}, {1});
  const ValueId output = append("test.increment", {input}, {}, 0, true);
  start();
  Command part = run(output, Engine::Compute, {1024, 8192 + 1024, -1}, {});
  const Command first = run(input, Engine::Compute, {0, -1});
  part.part = {output, 1024, 512};
  part.id = 1;
  Command producer = first;
  producer.id = 0;
  executor_->submit(std::vector{producer, part});
  EXPECT_EQ(drain().at(1).result, 1024) << "the body is told where its part begins";
  EXPECT_THAT(bytes_at(device(8192), 1024), Each(0));
  EXPECT_THAT(bytes_at(device(8192 + 1024), 512), Each(2));
  EXPECT_THAT(bytes_at(device(8192 + 1536), 1024), Each(0));
}

TEST_F(ExecutorTest, AFailureCancelsWhatDependsOnItAndOtherLanesDrain) {
  const ValueId bad = append("test.fail");
  const ValueId good = append("test.fill", {}, {3});
  start();
  executor_->submit(std::vector{
      run(bad, Engine::Compute, {0, -1}),                             // 0 fails
      copy(Engine::D2H, device(0), host(0), 64, {0}),                 // 1 waits for it
      copy(Engine::DiskWrite, host(0), disk(0), 64, {1}),             // 2 waits for what waits for it
      run(good, Engine::Compute, {4096, -1}),                         // 3 follows it in its lane
      run(good, Engine::CpuOptimizer, {4096, -1}),                    // 4 has nothing to do with it
      copy(Engine::H2D, host(4096), device(8192), kValueBytes, {4}),  // 5 neither
  });
  const auto events = drain();
  EXPECT_EQ(events.at(0).outcome, Outcome::Failed);
  EXPECT_THAT(events.at(0).error, HasSubstr("the device is on fire"));
  EXPECT_THAT(events.at(0).error, HasSubstr("test.fail"));
  for (CommandId id : {1, 2, 3}) EXPECT_EQ(events.at(id).outcome, Outcome::Cancelled) << id;
  for (CommandId id : {4, 5}) EXPECT_EQ(events.at(id).outcome, Outcome::Finished) << id;
  EXPECT_THAT(bytes_at(device(8192)), Each(3));
}

TEST_F(ExecutorTest, WhatIsSubmittedAfterAFailureIsCancelledToo) {
  const ValueId bad = append("test.fail");
  start();
  executor_->submit(std::vector{run(bad, Engine::Compute, {0, -1})});
  drain();
  executor_->submit(std::vector{copy(Engine::D2H, device(0), host(0), 64, {0})});
  EXPECT_EQ(drain().at(1).outcome, Outcome::Cancelled);
}

TEST_F(ExecutorTest, InterruptAndDeadlineEndAWait) {
  start();
  const EventBatch idle = executor_->wait({executor_->wait({0}).observed.ns + 1'000'000});
  EXPECT_TRUE(idle.events.empty() && idle.inputs.empty());
  executor_->request_interrupt();
  EXPECT_EQ(executor_->wait({idle.observed.ns + 60'000'000'000}).inputs.size(), 1U);
  EXPECT_TRUE(executor_->wait({0}).inputs.empty()) << "an interrupt is told once";
}

TEST_F(ExecutorTest, AnInterruptFromAnotherThreadWakesAWaitThatHasNoEvent) {
  start();
  std::thread user([this] { executor_->request_interrupt(); });
  constexpr TimeNs kFarAway{3600LL * 1'000'000'000};
  EXPECT_EQ(executor_->wait(kFarAway).inputs.size(), 1U);
  user.join();
}

TEST_F(ExecutorTest, ABodyAllocatesFromItsWorkspaceAndItsPeakIsRecorded) {
  const ValueId value = append("test.allocate", {}, {100, 64, 1}, 512);
  start();
  executor_->submit(std::vector{run(value, Engine::Compute, {0, 65536})});
  const auto events = drain();
  EXPECT_EQ(events.at(0).outcome, Outcome::Finished) << events.at(0).error;
  const auto peaks = executor_->workspace_peaks();
  ASSERT_EQ(peaks.size(), 1U);
  EXPECT_EQ(peaks[0].body, "test.allocate");
  EXPECT_EQ(peaks[0].declared_bytes, 512);
  EXPECT_EQ(peaks[0].peak_bytes, 128 + 64 + 64) << "at 64-byte borders";
  EXPECT_EQ(peaks[0].peak_live_bytes, 256);
}

TEST_F(ExecutorTest, ABodyThatNeedsMoreThanItsWorkspaceFailsWithTheFigures) {
  const ValueId value = append("test.allocate", {}, {128, 128, 1}, 256);
  start();
  executor_->submit(std::vector{run(value, Engine::Compute, {0, 65536})});
  const Event event = drain().at(0);
  EXPECT_EQ(event.outcome, Outcome::Failed);
  EXPECT_THAT(event.error, HasSubstr("workspace of 256 bytes exceeded"));
}

TEST_F(ExecutorTest, ABodyWithoutWorkspaceMayNotAllocate) {
  const ValueId value = append("test.allocate", {}, {1}, 0);
  start();
  executor_->submit(std::vector{run(value, Engine::Compute, {0, -1})});
  EXPECT_EQ(drain().at(0).outcome, Outcome::Failed);
}

TEST_F(ExecutorTest, ABodyThatKeepsItsWorkspaceFails) {
  const ValueId value = append("test.leak", {}, {64}, 128);
  start();
  executor_->submit(std::vector{run(value, Engine::Compute, {0, 65536})});
  EXPECT_THAT(drain().at(0).error, HasSubstr("kept 64 bytes"));
  executor_.reset();
  EXPECT_TRUE(take_leaked_back()) << "memory that is gone must not reach the heap";
}

TEST_F(ExecutorTest, FreedBytesArePoisonedBeforeTheNextUser) {
  const ValueId first = append("test.fill", {}, {1});
  const ValueId reader = append("test.sum", {first});
  options_.poison = true;
  start();
  // The compute lane reads bytes 0..4095; they are released after that; a copy then reuses the first 64 of them.
  executor_->submit(std::vector{run(first, Engine::Compute, {0, -1}), run(reader, Engine::Compute, {0, 8192, -1}, {0}),
                                release(device(0), kValueBytes, {1}), copy(Engine::H2D, host(0), device(0), 64, {1})});
  const auto events = drain();
  EXPECT_EQ(events.at(1).result, kValueBytes) << "poisoned before its last reader was done";
  EXPECT_THAT(bytes_at(device(0), 64), Each(0)) << "poisoned after its next user had written";
  EXPECT_THAT(bytes_at(device(64), kValueBytes - 64), Each(0xFF));
}

TEST_F(ExecutorTest, ThrottledCopiesTakeAtLeastTheirTime) {
  constexpr double kRate = 64e6;  // bytes/s: 256 KiB take 4.096 ms
  options_.copy_bytes_per_s[static_cast<std::size_t>(Engine::H2D)] = kRate;
  start();
  executor_->submit(std::vector{copy(Engine::H2D, host(0), device(0), 1 << 18)});
  const Event event = drain().at(0);
  EXPECT_GE(event.finished.ns - event.started.ns, 4'096'000 - 1'000);
}

TEST_F(ExecutorTest, AnExecutorMayBeDestroyedWithWorkInFlight) {
  const ValueId value = append("test.fill", {}, {5});
  start();
  std::vector<Command> commands(100);
  for (Command& command : commands) command = run(value, Engine::Compute, {0, -1});
  executor_->submit(commands);
  executor_.reset();
}

TEST_F(ExecutorTest, AnArenaThatCannotBeHadIsADeviceError) {
  options_.arena_bytes[0] = std::int64_t{1} << 60;
  EXPECT_THROW(start(), DeviceError);
}

}  // namespace
}  // namespace tandem
