// The scheduler under every policy: runs to the end, in memory it was given, with all conflicting commands ordered.
#include "core/scheduler/scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/base/errors.hpp"
#include "core/scheduler/replay.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using testing::gpt_scenario;
using testing::run_null;

struct Case {
  const char* policy;
  std::map<std::string, std::string> options;
  std::int64_t least_device_bytes = 0;  // what it needs for states that it keeps there
};

class EveryPolicy : public ::testing::TestWithParam<Case> {};

TEST_P(EveryPolicy, RunsToTheEndInOrderUnderShrinkingMemory) {
  for (std::int64_t device_bytes :
       {std::int64_t{1} << 30, std::int64_t{4} << 20, std::int64_t{3} << 20, std::int64_t{2} << 20}) {
    if (device_bytes < GetParam().least_device_bytes) continue;
    for (std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
      Scenario scenario = gpt_scenario(GetParam().policy, device_bytes);
      scenario.workload.precision = seed < 4 ? DType::F32 : DType::BF16;
      scenario.policy.options = GetParam().options;
      scenario.workload.micro_batches = 2;
      scenario.optimizer.clip_norm = seed % 2 ? 1.0 : 0.0;
      scenario.workload.recompute = seed % 4 < 2 ? "none" : "block";
      scenario.validation = {.every = static_cast<std::int32_t>(seed / 2 % 3), .batches = 2};
      NullExecutor::Options options;
      options.seed = seed;
      const auto run = run_null(scenario, options);
      EXPECT_EQ(run.violation, "") << GetParam().policy << " device bytes " << device_bytes << " seed " << seed;
      EXPECT_TRUE(run.scheduler->finished());
      EXPECT_LE(run.scheduler->pool(Tier::Device).peak_bytes(), device_bytes);
    }
  }
}

// Whatever the host lacks: a run ends, or says what does not fit. None stands still.
TEST_P(EveryPolicy, SaysWhatTheHostHasNoRoomFor) {
  Scenario scenario = gpt_scenario(GetParam().policy, std::max<std::int64_t>(GetParam().least_device_bytes, 2 << 20));
  scenario.policy.options = GetParam().options;
  const std::int64_t most = run_null(scenario).scheduler->pool(Tier::HostPinned).peak_bytes();
  constexpr std::int64_t kSteps = 32;
  for (const std::int64_t disk_bytes : {std::int64_t{0}, most}) {
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = disk_bytes;
    int refused = 0;
    for (std::int64_t i = 1; i < kSteps; ++i) {
      scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = most * i / kSteps;
      try {
        EXPECT_TRUE(run_null(scenario).scheduler->finished());
      } catch (const DoesNotFit& error) {
        ++refused;
        EXPECT_TRUE(std::string(error.what()).starts_with("does not fit: ")) << error.what();
      }
    }
    EXPECT_TRUE(refused > 0 || disk_bytes > 0);
  }
}

TEST_P(EveryPolicy, ReplaysToTheSameCommands) {
  Scenario scenario = gpt_scenario(GetParam().policy, 1 << 30);
  scenario.policy.options = GetParam().options;
  NullExecutor::Options options;
  options.seed = 7;
  const auto run = run_null(scenario, options);
  std::stringstream file;
  write_log(file,
            {.schema = 1, .mode = "simulated", .scenario = "a: b\nc: d", .profile = "p", .build = "test", .seed = 7},
            run.log);
  const ReadLog log = read_log(file, "test.log");
  EXPECT_EQ(log.header.scenario, "a: b\nc: d");
  const auto again = make_scheduler(scenario, *run.estimate);
  Scheduler* ranks[] = {again.get()};
  const ReplayReport report = replay(log, ranks);
  EXPECT_EQ(report.difference, "");
  EXPECT_EQ(report.commands, run.commands);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryPolicy,
    ::testing::Values(
        Case{"resident", {}, 1 << 30}, Case{"on_demand", {}}, Case{"on_demand", {{"optimizer", "cpu"}}},
        Case{"zero_offload", {}}, Case{"zero_offload", {{"delayed_update", "true"}}}, Case{"cotrain", {}},
        Case{"cotrain", {{"separation", "0"}}}, Case{"cotrain", {{"separation", "3"}}, 3 << 20},
        Case{"lsp_offload", {{"check_every", "2"}}, 3 << 20}, Case{"one_bit_adam", {}},
        Case{"one_bit_adam", {{"block", "32"}}, 3 << 20}, Case{"lsp_offload", {{"rank", "1000"}}, 3 << 20},
        Case{"split_update", {}}, Case{"balanced", {}}, Case{"deep_optimizer_states", {}},
        Case{"deep_optimizer_states", {{"stride", "1"}}},
        Case{"deep_optimizer_states", {{"stride", "2"}, {"resident_buckets", "1"}}}, Case{"stronghold", {}},
        Case{"stronghold", {{"window", "3"}}, 3 << 20}, Case{"zero_infinity", {}},
        Case{"zero_infinity", {{"prefetch", "0"}}}, Case{"zero_infinity", {{"parameters", "device"}}, 3 << 20},
        Case{"zero_infinity", {{"variant", "deepspeed"}}}, Case{"mlp_offload", {}},
        Case{"mlp_offload", {{"buffers", "1"}, {"prefetch", "0"}}},
        Case{"mlp_offload", {{"parameters", "device"}}, 3 << 20}, Case{"ssdtrain", {}, 4 << 20},
        Case{"ssdtrain", {{"offload_blocks", "3"}}, 4 << 20}, Case{"protrain", {}},
        Case{"protrain", {{"chunk_buffers", "1"}}}, Case{"protrain", {{"persistent_chunks", "3"}}, 3 << 20},
        Case{"patrickstar", {}}, Case{"patrickstar", {{"overlap", "true"}}},
        Case{"patrickstar", {{"margin_chunks", "2"}, {"chunk_elements", "100000"}}, 3 << 20}, Case{"g10", {}},
        Case{"g10", {}, 3 << 20}, Case{"l2l", {}}, Case{"l2l", {{"optimizer", "device"}, {"recompute_blocks", "2"}}},
        Case{"l2l", {{"stash", "host"}, {"prefetch", "0"}}}));

TEST(Scheduler, ResidentSaysWhatDoesNotFit) {
  const Scenario scenario = gpt_scenario("resident", 1 << 20);
  try {
    run_null(scenario);
    FAIL() << "it should not fit";
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("does not fit: device memory of rank 0"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("capacity 1048576 bytes"), std::string::npos) << error.what();
  }
}

TEST(Scheduler, AFailedCommandDrainsTheRest) {
  const auto good = run_null(gpt_scenario("on_demand", 1 << 30));
  const auto& commands = good.log.entries()[good.log.entries().size() / 2].commands;
  const auto work = std::find_if(commands.begin(), commands.end(),
                                 [](const Command& command) { return command.kind != CommandKind::Release; });
  ASSERT_NE(work, commands.end());
  NullExecutor::Options options;
  options.fail = work->id;
  const auto run = run_null(gpt_scenario("on_demand", 1 << 30), options);
  EXPECT_TRUE(run.scheduler->finished());
  EXPECT_NE(run.scheduler->failure().find("injected failure"), std::string::npos);
}

// A moment that is partly on the device and partly on the host moves no bytes once it is divided.
TEST(Scheduler, PartsStayWhereTheyAreUpdated) {
  Scenario scenario = gpt_scenario("split_update", std::int64_t{1} << 30);
  scenario.steps = 4;
  const auto run = run_null(scenario);
  const Graph& graph = run.scheduler->graph();
  std::map<std::int32_t, std::int64_t> state_bytes;  // copied, by version
  for (const auto& entry : run.log.entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Copy && graph.tensor_of(command.part.value).role == Role::OptimizerState)
        state_bytes[graph.value(command.part.value).version] += command.part.bytes;
  EXPECT_GT(state_bytes[0], 0) << "the device's part leaves the host once";
  EXPECT_EQ(state_bytes.size(), 1u) << "later versions stay in parts";
}

// The update of a bf16 parameter reads it: where the CPU makes it, the host keeps what it wrote, although parameters
// live on the device. The first update fetches what was loaded.
TEST(Scheduler, BFloat16ParametersStayOnTheHostThatUpdatesThem) {
  for (const char* policy : {"zero_offload", "balanced"}) {
    Scenario scenario = gpt_scenario(policy, std::int64_t{1} << 30);
    scenario.workload.precision = DType::BF16;
    scenario.steps = 4;
    if (policy == std::string("balanced"))
      scenario.policy.options = {{"device_percent", "50"}, {"resident_buckets", "0"}};
    const auto run = run_null(scenario);
    const Graph& graph = run.scheduler->graph();
    std::map<std::int32_t, std::int64_t> down;  // by version
    for (const auto& entry : run.log.entries())
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Copy && command.target.tier == Tier::HostPinned &&
            graph.tensor_of(command.part.value).role == Role::Parameter)
          down[graph.value(command.part.value).version] += command.part.bytes;
    EXPECT_GT(down[0], 0) << policy;
    EXPECT_EQ(down.size(), 1u) << policy;
  }
}

// Enough bytes are free, but apart: what lies between moves within the device, and no activation leaves it.
TEST(Scheduler, MovesWhatLiesInTheWay) {
  for (const std::int64_t kib : {3280, 3664}) {
    const auto run = run_null(gpt_scenario("protrain", kib << 10));
    EXPECT_EQ(run.violation, "");
    int moved = 0;
    for (const auto& entry : run.log.entries())
      for (const Command& command : entry.commands) {
        if (command.kind != CommandKind::Copy) continue;
        const bool activation = run.scheduler->graph().tensor_of(command.part.value).role == Role::Activation;
        EXPECT_FALSE(activation && command.target.tier != Tier::Device) << command.id;
        if (command.source.tier != command.target.tier) continue;
        ++moved;
        EXPECT_EQ(command.lane.kind(), Engine::Compute);
        EXPECT_GE(std::abs(command.source.offset - command.target.offset), command.part.bytes) << "no overlap";
      }
    EXPECT_GT(moved, 0) << kib;
  }
}

TEST(Scheduler, SpillsToDiskWhenTheHostIsShort) {
  for (std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    Scenario scenario = gpt_scenario(seed < 3 ? "on_demand" : "zero_infinity", 2 << 20);
    scenario.machine = testing::round_machine(2 << 20, 4 << 20, std::int64_t{1} << 30);
    NullExecutor::Options options;
    options.seed = seed;
    const auto run = run_null(scenario, options);
    EXPECT_EQ(run.violation, "");
    EXPECT_GT(run.scheduler->pool(Tier::Disk).peak_bytes(), 0);
    EXPECT_LE(run.scheduler->pool(Tier::HostPinned).peak_bytes(), 4 << 20);
  }
}

}  // namespace
}  // namespace tandem
