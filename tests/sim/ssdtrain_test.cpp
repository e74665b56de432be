// SSDTrain in simulated time: a step as long as plain training's where the disk is fast enough, less device memory by
// what has left, and no read of what is still on its way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr int kBlocks = 8, kSteps = 3;
constexpr double kInstantly = 1e15;

// Activations outweigh all else: 16-bit parameters of 0.1 MB a block, 2.1 MB saved.
Scenario wide(const std::string& policy, std::map<std::string, std::string> options, double disk_bytes_per_s) {
  Scenario s = gpt_scenario(policy, kGiB, kBlocks);
  s.machine = round_machine(kGiB, kGiB, kGiB);
  s.machine.h2d.bytes_per_s = s.machine.d2h.bytes_per_s = kInstantly;
  s.machine.disk_read.bytes_per_s = s.machine.disk_write.bytes_per_s = disk_bytes_per_s;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].bytes_per_s = disk_bytes_per_s;
  s.workload.precision = DType::BF16;
  s.workload.batch = 32;
  s.steps = kSteps;
  s.policy.options = std::move(options);
  return s;
}

Scenario offloading(const std::string& blocks, double disk_bytes_per_s) {
  return wide("ssdtrain", {{"offload_blocks", blocks}}, disk_bytes_per_s);
}

using Way = std::pair<Tier, Tier>;
constexpr Way kOut{Tier::Device, Tier::HostPinned}, kWrite{Tier::HostPinned, Tier::Disk};
constexpr Way kRead{Tier::Disk, Tier::HostPinned}, kIn{Tier::HostPinned, Tier::Device};

struct Outcome {
  std::int64_t step_ns = 0;  // from the second training step's last command on the compute lane to the third's
  std::array<std::int64_t, kTierCount> peak_bytes{};
  std::map<Way, std::int64_t> bytes;  // of activations
  std::set<std::pair<ValueId, Way>> copied;
  bool took(ValueId value, Way way) const { return copied.contains({value, way}); }
  std::int64_t peak(Tier tier) const { return peak_bytes[static_cast<std::size_t>(tier)]; }
};

void count_copy(const Graph& graph, const Command& command, Outcome& outcome) {
  const ValueId value = command.part.value;
  if (graph.tensor_of(value).role != Role::Activation) return;
  const Way way{command.source.tier, command.target.tier};
  outcome.bytes[way] += command.part.bytes;
  EXPECT_TRUE(outcome.copied.emplace(value, way).second) << graph.value_name(value) << " takes a way twice";
}

Outcome simulate(const Scenario& scenario) {
  Simulation simulation(scenario, Fidelity::Alone);
  simulation.run();
  Outcome outcome;
  std::map<CommandId, std::int32_t> steps;
  std::map<std::int32_t, std::int64_t> ends;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = steps.find(event.command); found != steps.end()) ends[found->second] = event.finished.ns;
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Copy) count_copy(simulation.graph(), command, outcome);
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute)
        steps[command.id] = simulation.graph().op(command.op).step;
    }
  }
  outcome.step_ns = ends.at(2) - ends.at(1);
  outcome.peak_bytes = simulation.record().ranks.front().peak_bytes;
  return outcome;
}

// What the first `count` blocks' backwards read of what forwards wrote, in one step.
std::int64_t saved_bytes(const Scenario& scenario, int count) {
  Graph graph;
  const auto source = find_workload("gpt")->make(scenario, {});
  source->prologue(graph);
  source->append_step(graph, 0);
  std::set<ValueId> values;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::Backward && op.layer >= 1 && op.layer <= count)
      for (ValueId read : op.reads)
        if (graph.tensor_of(read).role == Role::Activation &&
            graph.op(graph.value(read).producer).phase == Phase::Forward)
          values.insert(read);
  std::int64_t bytes = 0;
  for (ValueId value : values) bytes += graph.value(value).bytes;
  return bytes;
}

TEST(SsdTrain, AFastDiskTakesActivationsAtNoCost) {
  const Scenario plain = wide("resident", {}, kInstantly);
  const std::int64_t step_ns = simulate(plain).step_ns;
  std::int64_t before = simulate(offloading("0", kInstantly)).peak(Tier::Device);
  for (const int count : {2, 4}) {
    const Outcome offloaded = simulate(offloading(std::to_string(count), kInstantly));
    EXPECT_EQ(offloaded.step_ns, step_ns) << count;
    for (const Way& way : {kOut, kWrite, kRead, kIn})
      EXPECT_EQ(offloaded.bytes.at(way), kSteps * saved_bytes(plain, count)) << count;
    EXPECT_EQ(before - offloaded.peak(Tier::Device), saved_bytes(plain, count) - saved_bytes(plain, count - 2));
    before = offloaded.peak(Tier::Device);
  }
}

// 2.1 ms a block each way, in which the others compute six steps.
constexpr double kSlow = 1e9;

TEST(SsdTrain, WhatIsOnItsWayIsTakenFromThere) {
  const Scenario plain = wide("resident", {}, kInstantly);
  const Outcome roomy = simulate(offloading("6", kSlow));
  int forwarded = 0, not_written = 0;
  for (const auto& [value, way] : roomy.copied) {
    if (way == kIn && !roomy.took(value, kRead)) ++forwarded;
    if (way == kOut && !roomy.took(value, kWrite)) ++not_written;
  }
  EXPECT_GT(forwarded, 0);
  EXPECT_GT(not_written, 0);
  EXPECT_LT(roomy.bytes.at(kRead), roomy.bytes.at(kWrite));
  EXPECT_LT(roomy.bytes.at(kOut), kSteps * saved_bytes(plain, 6)) << "some never leave the device";
  // On the host: two blocks' on their way out, one value on its way back, and the batch.
  EXPECT_LE(roomy.peak(Tier::HostPinned), 3 * saved_bytes(plain, 1));
}

TEST(SsdTrain, ATightDeviceWaitsForASlowDisk) {
  const Scenario plain = wide("resident", {}, kInstantly);
  const Outcome roomy = simulate(offloading("6", kSlow));
  EXPECT_GT(roomy.step_ns, simulate(plain).step_ns);
  Scenario tight = offloading("6", kSlow);
  tight.limits.device_bytes = simulate(offloading("6", kInstantly)).peak(Tier::Device) + saved_bytes(plain, 1);
  const Outcome waiting = simulate(tight);
  EXPECT_LE(waiting.peak(Tier::Device), tight.limits.device_bytes);
  EXPECT_GT(waiting.bytes.at(kWrite), roomy.bytes.at(kWrite));
  EXPECT_GT(waiting.step_ns, roomy.step_ns);
}

TEST(SsdTrain, ASmallHostIsEnoughOnTheWay) {
  Scenario scenario = offloading("6", kInstantly);
  const std::int64_t step_ns = simulate(scenario).step_ns;
  scenario.limits.host_bytes = saved_bytes(scenario, 1) / 2;
  const Outcome small = simulate(scenario);
  EXPECT_EQ(small.step_ns, step_ns);
  EXPECT_LE(small.peak(Tier::HostPinned), scenario.limits.host_bytes);
}

// By the estimates: blocks whose way both ways hides behind the others' computing, and those without which a step does
// not fit.
TEST(SsdTrain, AsManyLeaveAsHide) {
  const auto automatic = [](double disk_bytes_per_s, std::int64_t device_bytes = kGiB) {
    Scenario scenario = wide("ssdtrain", {}, disk_bytes_per_s);
    scenario.limits.device_bytes = device_bytes;
    return simulate(scenario);
  };
  const std::int64_t step_ns = simulate(wide("resident", {}, kInstantly)).step_ns;
  std::int64_t before = 0;
  for (const double rate : {kSlow, 50e9, 100e9, kInstantly}) {
    const Outcome outcome = automatic(rate);
    EXPECT_EQ(outcome.step_ns, step_ns) << rate;
    const std::int64_t written = outcome.copied.empty() ? 0 : outcome.bytes.at(kWrite);
    EXPECT_TRUE(rate == kSlow ? written == 0 : written > before) << rate << ": " << written;
    before = written;
  }
  const std::int64_t tight = simulate(offloading("4", kInstantly)).peak(Tier::Device);
  EXPECT_GT(automatic(kSlow, tight).bytes.at(kWrite), 0);
}

TEST(SsdTrain, TheHostTakesThemWhereItIsTheTier) {
  Scenario scenario = wide("ssdtrain", {{"offload_blocks", "4"}, {"tier", "host"}}, kInstantly);
  const Outcome outcome = simulate(scenario);
  EXPECT_EQ(outcome.bytes.at(kOut), kSteps * saved_bytes(scenario, 4));
  EXPECT_EQ(outcome.bytes.at(kIn), outcome.bytes.at(kOut));
  EXPECT_FALSE(outcome.bytes.contains(kWrite));
}

TEST(SsdTrain, RecomputedBlocksFollowTheOffloaded) {
  Scenario scenario = wide("ssdtrain", {{"offload_blocks", "2"}, {"recompute_blocks", "3"}}, kInstantly);
  const Outcome outcome = simulate(scenario), kept = simulate(offloading("2", kInstantly));
  EXPECT_EQ(outcome.bytes.at(kOut), kSteps * saved_bytes(scenario, 2));
  EXPECT_LT(outcome.peak(Tier::Device), kept.peak(Tier::Device));
  EXPECT_GT(outcome.step_ns, kept.step_ns);
}

TEST(SsdTrain, WithoutADiskNothingCanGoThere) {
  Scenario scenario = wide("ssdtrain", {{"tier", "disk"}}, kSlow);
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)] = {};
  try {
    Simulation simulation(scenario);
    FAIL() << "it should be refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "policy.tier: the machine has no disk; allowed: auto, host");
  }
}

}  // namespace
}  // namespace tandem::testing
