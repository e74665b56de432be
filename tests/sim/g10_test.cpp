// G10 in simulated time: nothing moves where all fits, migrations hide behind computing where they can, and where they
// cannot a step is shorter than with eviction at need.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/base/errors.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Activations outweigh all else: 8 blocks that save 4.2 MB each in 0.2 ms.
Scenario wide(const std::string& policy, std::int64_t device_bytes, double bytes_per_s = 1e10) {
  Scenario s = gpt_scenario(policy, device_bytes, 8);
  s.machine = round_machine(device_bytes, kGiB, kGiB);
  s.machine.h2d.bytes_per_s = s.machine.d2h.bytes_per_s = bytes_per_s;
  s.workload.batch = 32;
  s.steps = 5;
  return s;
}

struct Outcome {
  std::int64_t step_ns = 0;  // of the fourth step, from end to end of computing
  std::int64_t device_peak = 0, host_peak = 0;
  std::map<Engine, std::int64_t> bytes;  // copied, once the first step has run
};

Outcome simulate(const Scenario& scenario) {
  Simulation simulation(scenario, Fidelity::Alone);
  simulation.run();
  Outcome outcome;
  std::map<CommandId, std::int32_t> steps;
  std::map<std::int32_t, std::int64_t> ends;
  bool warm = false;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = steps.find(event.command); found != steps.end())
        ends[found->second] = std::max(ends[found->second], event.finished.ns);
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute)
        warm = (steps[command.id] = simulation.graph().op(command.op).step) > 0;
      const bool batch =
          command.kind == CommandKind::Copy && simulation.graph().tensor_of(command.part.value).role == Role::Batch;
      if (command.kind == CommandKind::Copy && warm && !batch) outcome.bytes[command.lane.kind()] += command.part.bytes;
    }
  }
  outcome.step_ns = ends.at(3) - ends.at(2);
  const auto peaks = simulation.record().ranks.front().peak_bytes;
  outcome.device_peak = peaks[static_cast<std::size_t>(Tier::Device)];
  outcome.host_peak = peaks[static_cast<std::size_t>(Tier::HostPinned)];
  return outcome;
}

TEST(G10, NothingMovesWhereAllFits) {
  const Outcome plain = simulate(wide("resident", kGiB)), outcome = simulate(wide("g10", kGiB));
  EXPECT_EQ(outcome.step_ns, plain.step_ns);
  EXPECT_TRUE(outcome.bytes.empty());
}

TEST(G10, MigrationsHideBehindComputing) {
  const Outcome plain = simulate(wide("resident", kGiB));
  for (const int percent : {90, 75}) {
    constexpr double kFast = 1e12;
    const Outcome outcome = simulate(wide("g10", plain.device_peak * percent / 100, kFast));
    EXPECT_LE(outcome.device_peak, plain.device_peak * percent / 100);
    EXPECT_GT(outcome.bytes.at(Engine::D2H), 0);
    EXPECT_LT(outcome.step_ns, plain.step_ns * 102 / 100) << percent << "%";
  }
}

// One and a half to two and a half times as much is in use as there is room, and the bus is slow, so that a step waits,
// or fast.
TEST(G10, BeatsEvictionAtNeed) {
  const auto large = [](const std::string& policy, std::int64_t device_bytes, double bytes_per_s) {
    Scenario s = wide(policy, device_bytes, bytes_per_s);
    s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 100 * kGiB;
    s.workload.keys["hidden"] = 1024, s.workload.keys["sequence"] = 1024;
    s.workload.batch = 16;
    return s;
  };
  const Outcome plain = simulate(large("resident", 100 * kGiB, 1e10));
  for (const int percent : {67, 50, 40})
    for (const double rate : {8e9, 16e9, 32e9}) {
      const std::int64_t room = plain.device_peak / 100 * percent;
      const Outcome outcome = simulate(large("g10", room, rate)), at_need = simulate(large("on_demand", room, rate));
      EXPECT_LT(outcome.step_ns, at_need.step_ns) << percent << "%, " << rate << " B/s";
      EXPECT_GE(outcome.step_ns, plain.step_ns);
    }
}

// G10-GDS: the host holds what is on its way, and no more.
TEST(G10, WithoutTheHostValuesLeaveToTheDisk) {
  const Outcome plain = simulate(wide("resident", kGiB));
  Scenario scenario = wide("g10", plain.device_peak / 2);
  Outcome host = simulate(scenario);
  scenario.policy.options = {{"host", "false"}};
  const Outcome disk = simulate(scenario);
  EXPECT_GT(disk.bytes.at(Engine::DiskWrite), 2 * host.bytes[Engine::DiskWrite]);
  EXPECT_GT(disk.bytes.at(Engine::DiskRead), 2 * host.bytes[Engine::DiskRead]);
  EXPECT_LT(disk.host_peak, host.host_peak);
}

TEST(G10, WithoutTheHostItNeedsADisk) {
  Scenario scenario = wide("g10", kGiB);
  scenario.policy.options = {{"host", "false"}};
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)] = {};
  try {
    Simulation simulation(scenario);
    FAIL() << "it should be refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "policy.host: the machine has no disk; allowed: true");
  }
}

}  // namespace
}  // namespace tandem::testing
