// Homes and amounts that a scenario names: a run keeps to them, or is refused. What is left open is chosen by what the
// tiers hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "report/json_result.hpp"
#include "report/summary.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using Options = std::map<std::string, std::string>;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// A network of 0.8 M parameters: 1.6 MB of them in bf16, as much of gradients, and 8 MB of states.
Scenario small(const std::string& policy, const Options& options, std::int64_t device_bytes, std::int64_t host_bytes,
               std::int64_t disk_bytes) {
  Scenario scenario = gpt_scenario(policy, device_bytes);
  scenario.machine = round_machine(device_bytes, host_bytes, disk_bytes);
  scenario.workload.keys["hidden"] = 128;
  scenario.workload.precision = DType::BF16;
  scenario.policy.options = options;
  return scenario;
}

struct Outcome3 {
  std::string refusal;  // "" where it fits
  std::array<std::int64_t, kTierCount> peak_bytes{}, evicted_bytes{};
  std::int64_t activations_out = 0;  // bytes that left the device
  bool fits() const { return refusal.empty(); }
  std::int64_t peak(Tier tier) const { return peak_bytes[static_cast<std::size_t>(tier)]; }
  std::int64_t evicted(Tier tier) const { return evicted_bytes[static_cast<std::size_t>(tier)]; }
};

Outcome3 outcome(const Scenario& scenario) {
  Outcome3 out;
  try {
    Simulation simulation(scenario);
    simulation.run();
    const RunRecord record = simulation.record();
    out.peak_bytes = record.ranks[0].peak_bytes;
    out.evicted_bytes = record.ranks[0].evicted_bytes;
    for (const auto& entry : simulation.log().entries())
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Copy && command.source.tier == Tier::Device &&
            command.target.tier != Tier::Device &&
            simulation.graph().tensor_of(command.part.value).role == Role::Activation)
          out.activations_out += command.part.bytes;
  } catch (const DoesNotFit& error) {
    out.refusal = error.what();
  }
  return out;
}

const std::vector<std::pair<std::string, Options>> kOnHost = {
    {"zero_infinity", {{"parameters", "host"}, {"gradients", "host"}, {"optimizer_states", "host"}}},
    {"zero_infinity", {{"parameters", "device"}, {"gradients", "host"}, {"optimizer_states", "host"}}},
    {"mlp_offload", {{"parameters", "host"}, {"optimizer_states", "host"}}},
    {"on_demand", {{"home", "host"}}},
    {"ssdtrain", {{"tier", "host"}}},
};

TEST(Homes, WhereTheHostIsNamedTheDiskHoldsNothing) {
  for (const auto& [policy, options] : kOnHost) {
    int fit = 0, refused = 0;
    for (std::int64_t host = 4 * kMiB; host <= 20 * kMiB; host += kMiB)
      for (const std::int64_t device : {3 * kMiB, 6 * kMiB, 13 * kMiB}) {
        const Outcome3 run = outcome(small(policy, options, device, host, kGiB));
        EXPECT_EQ(run.peak(Tier::Disk), 0) << policy << ' ' << host << ' ' << device;
        EXPECT_EQ(run.evicted(Tier::Disk), 0) << policy << ' ' << host << ' ' << device;
        (run.fits() ? fit : refused) += 1;
      }
    EXPECT_GT(fit, 0) << policy;
    EXPECT_TRUE(refused > 0 || policy == "ssdtrain") << policy;
  }
}

TEST(Homes, ARefusalSaysWhichHomeIsTooSmall) {
  const Options named = {{"parameters", "host"}, {"gradients", "host"}, {"optimizer_states", "host"}};
  const Outcome3 run = outcome(small("zero_infinity", named, 64 * kMiB, 9 * kMiB, kGiB));
  EXPECT_THAT(run.refusal, HasSubstr("host_pinned"));
  EXPECT_THAT(run.refusal, HasSubstr("policy.optimizer_states: host"));
  EXPECT_THAT(run.refusal, HasSubstr("auto, or a lower tier"));
  EXPECT_TRUE(outcome(small("zero_infinity", {}, 64 * kMiB, 9 * kMiB, kGiB)).fits()) << "left open, it fits";
}

TEST(Homes, WithoutADiskNothingIsThere) {
  for (const PolicyEntry* policy : policies()) {
    Scenario scenario = small(std::string(policy->name), {}, 64 * kMiB, kGiB, kGiB);
    scenario.limits.disk_bytes = 0;
    const Outcome3 run = outcome(scenario);
    EXPECT_TRUE(run.fits()) << policy->name << ": " << run.refusal;
    EXPECT_EQ(run.peak(Tier::Disk), 0) << policy->name;
  }
}

TEST(Homes, NoBlocksToOffloadKeepsActivationsOnTheDevice) {
  int policies_with_it = 0;
  for (const PolicyEntry* policy : policies()) {
    if (std::find(policy->options.begin(), policy->options.end(), "offload_blocks") == policy->options.end()) continue;
    ++policies_with_it;
    int fit = 0, refused = 0;
    for (std::int64_t device = 2 * kMiB; device <= 32 * kMiB; device += device / 4) {
      const Outcome3 run =
          outcome(small(std::string(policy->name), {{"offload_blocks", "0"}}, device, 64 * kMiB, kGiB));
      EXPECT_EQ(run.activations_out, 0) << policy->name << ' ' << device;
      (run.fits() ? fit : refused) += 1;
    }
    EXPECT_GT(fit, 0) << policy->name;
    EXPECT_GT(refused, 0) << policy->name;
  }
  EXPECT_GE(policies_with_it, 10);
}

TEST(Homes, AStashOnTheDeviceStaysThere) {
  for (std::int64_t device = 2 * kMiB; device <= 16 * kMiB; device += device / 4)
    EXPECT_EQ(outcome(small("l2l", {{"stash", "device"}}, device, 64 * kMiB, kGiB)).activations_out, 0) << device;
}

TEST(Homes, WithoutTheHostG10LeavesNothingThere) {
  for (std::int64_t device = 4 * kMiB; device <= 12 * kMiB; device += kMiB)
    EXPECT_EQ(outcome(small("g10", {{"host", "false"}}, device, 64 * kMiB, kGiB)).evicted(Tier::HostPinned), 0)
        << device;
}

TEST(Homes, NoUpdatesOnTheDeviceAreNone) {
  for (const char* policy : {"balanced", "split_update"}) {
    const Scenario scenario = small(policy, {{"device_percent", "0"}}, 64 * kMiB, kGiB, 0);
    Simulation simulation(scenario);
    simulation.run();
    for (const auto& entry : simulation.log().entries())
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Run && simulation.graph().op(command.op).phase == Phase::OptimizerStep) {
          EXPECT_EQ(command.lane.kind(), Engine::CpuOptimizer) << policy;
        }
  }
}

TEST(Homes, WhatHadToGoATierDownIsSaid) {
  {
    const Scenario scenario = small("on_demand", {}, 4 * kMiB, 6 * kMiB, kGiB);
    Simulation simulation(scenario);
    simulation.run();
    const RunRecord record = simulation.record();
    const Analysis analysis = analyse(record);
    const auto result = to_json(analysis);
    ASSERT_TRUE(result.contains("evicted_bytes"));
    EXPECT_EQ(result["evicted_bytes"]["disk"], record.ranks[0].evicted_bytes[static_cast<std::size_t>(Tier::Disk)]);
    EXPECT_GT(result["evicted_bytes"]["disk"], 0);
    EXPECT_THAT(summary(analysis, {}), HasSubstr("to disk to make room"));
  }
  const Scenario roomy = small("resident", {}, 64 * kMiB, kGiB, kGiB);
  Simulation simulation(roomy);
  simulation.run();
  const RunRecord record = simulation.record();
  const Analysis analysis = analyse(record);
  EXPECT_FALSE(to_json(analysis).contains("evicted_bytes"));
  EXPECT_THAT(summary(analysis, {}), ::testing::Not(HasSubstr("evicted")));
}

// --- auto ---

std::vector<Options> namings(const std::string& policy) {
  std::vector<Options> all;
  if (policy == "on_demand") return {{{"home", "host"}}, {{"home", "disk"}}};
  if (policy == "ssdtrain") return {{{"tier", "host"}}, {{"tier", "disk"}}};
  for (const char* parameters : {"device", "host", "disk"})
    for (const char* states : {"host", "disk"}) {
      if (policy == "mlp_offload") all.push_back({{"parameters", parameters}, {"optimizer_states", states}});
      for (const char* gradients : {"device", "host", "disk"})
        if (policy == "zero_infinity")
          all.push_back({{"parameters", parameters}, {"optimizer_states", states}, {"gradients", gradients}});
    }
  return all;
}

TEST(Homes, AutoFitsWhereverSomeNamingDoes) {
  for (const std::string policy : {"zero_infinity", "mlp_offload", "on_demand", "ssdtrain"}) {
    int with_names = 0;
    for (const std::int64_t device : {2 * kMiB, 4 * kMiB, 8 * kMiB, 20 * kMiB})
      for (const std::int64_t host : {2 * kMiB, 4 * kMiB, 8 * kMiB, 12 * kMiB, 13 * kMiB, 14 * kMiB, 16 * kMiB})
        for (const std::int64_t disk : {kMiB, 4 * kMiB, 10 * kMiB, 14 * kMiB, kGiB}) {
          const std::vector<Options> ways = namings(policy);
          const auto fits = [&](const Options& options) {
            return outcome(small(policy, options, device, host, disk)).fits();
          };
          if (!std::any_of(ways.begin(), ways.end(), fits)) continue;
          ++with_names;
          EXPECT_EQ(outcome(small(policy, {}, device, host, disk)).refusal, "")
              << policy << ' ' << device / kMiB << ' ' << host / kMiB << ' ' << disk / kMiB;
        }
    EXPECT_GT(with_names, 20) << policy;
  }
}

// 2 billion parameters beside 32 GB: all of it fits on the host, and next to nothing on the disk.
TEST(Homes, AutoDoesNotPlanForADiskThatIsNotThere) {
  for (const std::string policy : {"zero_infinity", "mlp_offload", "on_demand"}) {
    Scenario scenario = gpt_scenario(policy, 12'000'000'000, 38);
    scenario.machine = round_machine(12'000'000'000, 32'000'000'000, kMiB);
    scenario.workload.keys["hidden"] = 2048;
    scenario.workload.keys["heads"] = 16;
    scenario.workload.keys["vocabulary"] = 50257;
    scenario.workload.keys["sequence"] = 512;
    scenario.workload.precision = DType::BF16;
    scenario.workload.recompute = "block";
    EXPECT_EQ(outcome(scenario).refusal, "") << policy;
  }
}

}  // namespace
}  // namespace tandem::testing
