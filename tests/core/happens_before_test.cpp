// The checker itself must be able to fail: a log with waits taken away is refused.
#include "core/scheduler/happens_before.hpp"

#include <gtest/gtest.h>

#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

std::string violation_without_waits(const testing::NullRun& run, CommandKind kind, std::int64_t keep_every) {
  HappensBefore checker(run.scheduler->graph());
  std::int64_t seen = 0;
  for (const auto& entry : run.log.entries()) {
    checker.append(entry.batch);
    auto commands = entry.commands;
    for (Command& command : commands)
      if (command.kind == kind && seen++ % keep_every == 0) command.wait_for.clear();
    checker.append(commands);
  }
  return checker.violation();
}

TEST(HappensBefore, SeesMissingWaits) {
  NullExecutor::Options options;
  options.seed = 3;
  const auto run = testing::run_null(testing::gpt_scenario("zero_offload", 3 << 20), options);
  ASSERT_EQ(run.violation, "");
  EXPECT_NE(violation_without_waits(run, CommandKind::Run, 1), "");
  EXPECT_NE(violation_without_waits(run, CommandKind::Copy, 1), "");
  EXPECT_NE(violation_without_waits(run, CommandKind::Copy, 7), "");
}

// Bytes go out while others come in to the same place: only a wait tells that the former have left.
TEST(HappensBefore, AWriteWaitsForThoseWhoStillRead) {
  const auto run = testing::run_null(testing::gpt_scenario("on_demand", 1 << 30));
  for (const bool waits : {true, false}) {
    HappensBefore checker(run.scheduler->graph());
    const auto copy = [&](CommandId id, Engine lane, Place source, Place target, const std::vector<CommandId>& before) {
      Command command;
      command.id = id;
      command.kind = CommandKind::Copy;
      command.lane = {0, lane};
      command.part = {0, 0, 64};
      command.source = source;
      command.target = target;
      command.wait_for.assign(before.begin(), before.end());
      checker.append(std::span<const Command>(&command, 1));
    };
    const Place device{0, Tier::Device, 0};
    copy(0, Engine::H2D, {0, Tier::HostPinned, 0}, device, {});
    copy(1, Engine::D2H, device, {0, Tier::HostPinned, 4096}, {0});
    copy(2, Engine::H2D, {0, Tier::HostPinned, 0}, device,
         waits ? std::vector<CommandId>{1} : std::vector<CommandId>{});
    EXPECT_EQ(checker.violation().empty(), waits) << checker.violation();
  }
}

TEST(HappensBefore, RefusesAWaitForALaterCommand) {
  const auto run = testing::run_null(testing::gpt_scenario("on_demand", 1 << 30));
  HappensBefore checker(run.scheduler->graph());
  checker.append(EventBatch{});
  auto commands = run.log.entries().front().commands;
  commands.front().wait_for.push_back(commands.back().id);
  checker.append(std::span<const Command>(commands).first(1));
  EXPECT_NE(checker.violation().find("waits for a later one"), std::string::npos);
}

}  // namespace
}  // namespace tandem
