// Several lanes of a kind, teams that share the cores, memory that is not pinned, and one memory for CPU and device.
#include <gtest/gtest.h>

#include "analysis/analysis.hpp"
#include "sim/simulate.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

TEST(SimLanes, TwoStreamsOfKernelsShareTheDevice) {
  HardwareProfile machine = round_machine();
  machine.lanes[Engine::Compute] = {2, 0};
  SimWorld world(machine);
  const CommandId one = world.run(LaneIndex(Engine::Compute, 0), 10 * kMs);
  const CommandId other = world.run(LaneIndex(Engine::Compute, 1), 30 * kMs);
  world.drain();
  EXPECT_EQ(world.finished(one), 20 * kMs);    // half the speed
  EXPECT_EQ(world.finished(other), 40 * kMs);  // 10 of its 30 are done by then
}

TEST(SimLanes, TeamsThatWantMoreCoresThanThereAreTakeTurns) {
  HardwareProfile machine = round_machine();
  machine.cores = 8;
  machine.lanes[Engine::CpuOptimizer] = {2, 3};
  machine.lanes[Engine::CpuCompute] = {1, 5};
  SimWorld world(machine);
  const CommandId update = world.run(LaneIndex(Engine::CpuOptimizer, 0), 10 * kMs);  // 3 cores
  const CommandId layer = world.run(Engine::CpuCompute, 20 * kMs);                   // 5 more: all 8
  const CommandId second = world.run(LaneIndex(Engine::CpuOptimizer, 1), 10 * kMs);  // waits for the first 3
  const CommandId third = world.run(LaneIndex(Engine::CpuOptimizer, 0), 10 * kMs);   // came later: waits behind it
  world.drain();
  EXPECT_EQ(world.finished(update), 10 * kMs);
  EXPECT_EQ(world.finished(layer), 20 * kMs);
  EXPECT_EQ(world.started(second), 10 * kMs);
  EXPECT_EQ(world.started(third), 20 * kMs);
}

TEST(SimLanes, WhoCameFirstIsNotPassedBySmallerClaims) {
  HardwareProfile machine = round_machine();
  machine.cores = 8;
  machine.lanes[Engine::CpuOptimizer] = {2, 4};
  machine.lanes[Engine::CpuCompute] = {1, 8};
  SimWorld world(machine);
  world.run(LaneIndex(Engine::CpuOptimizer, 0), 10 * kMs);
  const CommandId large = world.run(Engine::CpuCompute, 10 * kMs);  // needs all
  const CommandId small = world.run(LaneIndex(Engine::CpuOptimizer, 1), 10 * kMs);
  world.drain();
  EXPECT_EQ(world.started(large), 10 * kMs);
  EXPECT_EQ(world.started(small), 20 * kMs);
}

TEST(SimLanes, CopiesBeyondWhatIsPinnedGoAtPageableRates) {
  HardwareProfile machine = round_machine();
  machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 4 * kGB;
  machine.tiers[static_cast<std::size_t>(Tier::HostPageable)].capacity_bytes = 4 * kGB;
  machine.pageable_h2d = machine.pageable_d2h = {2e9, 1000, {}};
  SimWorld world(machine);
  const CommandId pinned = world.copy_from(3 * kGB, kGB);         // ends where pinned memory does
  const CommandId pageable = world.copy_from(3 * kGB + 64, kGB);  // 64 bytes of it lie beyond
  world.drain();
  EXPECT_EQ(world.finished(pinned), 100 * kMs);
  EXPECT_EQ(world.finished(pageable), 100 * kMs + 1000 + 500 * kMs);
}

TEST(SimLanes, KernelsAndTheCpuShareOnePool) {
  HardwareProfile machine = round_machine();
  machine.one_pool = true;
  memory_rate(machine, Tier::Device) = memory_rate(machine, Tier::HostPinned) = 100e9;
  SimWorld world(machine, Fidelity::Shared);
  // Each alone would take all of 100 GB/s for 100 ms.
  const CommandId kernel = world.run(Engine::Compute, 100 * kMs, {}, 0, 10 * kGB);
  const CommandId update = world.run(Engine::CpuOptimizer, 100 * kMs, {}, 0, 10 * kGB);
  world.drain();
  EXPECT_EQ(world.finished(kernel), 200 * kMs);
  EXPECT_EQ(world.finished(update), 200 * kMs);
}

// Bytes are in order, and each op finds those that it names.
MemoryLog run_checked(Simulation& simulation) {
  MemoryLog log;
  Contents contents(simulation.graph(), 0, &log);
  HappensBefore checker(simulation.graph(), 0, &contents);
  simulation.run(&checker);
  EXPECT_EQ(checker.violation(), "");
  EXPECT_EQ(contents.violation(), "");
  return log;
}

Scenario pooled(const std::string& policy, std::int64_t bytes, std::int64_t disk_bytes) {
  Scenario s = gpt_scenario(policy, bytes);
  s.machine = tandem::testing::round_machine(bytes, 0, disk_bytes);
  s.machine.one_pool = true;
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 1e12;
  s.workload.precision = DType::BF16;
  return s;
}

class OnePool : public ::testing::TestWithParam<std::string> {};

TEST_P(OnePool, HasEveryByteOnceAndCopiesNone) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  for (const std::int64_t disk_bytes : {std::int64_t{0}, 64 * kMiB}) {
    const Scenario scenario = pooled(GetParam(), 64 * kMiB, disk_bytes);
    Simulation simulation(scenario);
    const MemoryLog log = run_checked(simulation);
    for (const auto& entry : log.entries())
      for (const Command& command : entry.commands) {
        EXPECT_NE(command.source.tier, Tier::HostPinned);
        const bool over_bus = command.lane.kind() == Engine::H2D || command.lane.kind() == Engine::D2H;
        EXPECT_FALSE(command.kind == CommandKind::Copy && over_bus);
      }
    const Analysis analysis = analyse(simulation.record());
    EXPECT_LE(analysis.bound.overall(), analysis.mean_step_s * (1 + 1e-9));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, OnePool, ::testing::ValuesIn(exact_policies()),
                         [](const auto& test) { return test.param; });

// Every policy gives its work to whatever lanes of a kind there are, in an order that holds.
class ManyLanes : public ::testing::TestWithParam<std::string> {};

TEST_P(ManyLanes, AreOrderedAndUsed) {
  Scenario s = gpt_scenario(GetParam(), std::int64_t{8} << 20, 6);
  s.machine.lanes = {{Engine::Compute, {2, 0}}, {Engine::CpuOptimizer, {3, 2}}};
  s.workload.micro_batches = 2;
  Simulation simulation(s);
  const MemoryLog log = run_checked(simulation);
  std::set<LaneIndex> used;
  for (const auto& entry : log.entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run) used.insert(command.lane.index);
  const auto count = [&](Engine kind) {
    return std::count_if(used.begin(), used.end(), [&](LaneIndex lane) { return lane.kind() == kind; });
  };
  if (GetParam() == "zero_offload") {
    EXPECT_EQ(count(Engine::CpuOptimizer), 3) << "which hands over a step's updates all at once";
  }
  EXPECT_GE(count(Engine::Compute), 1);
}

INSTANTIATE_TEST_SUITE_P(Policies, ManyLanes, ::testing::ValuesIn(exact_policies()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tandem::testing
