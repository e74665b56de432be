// Lanes as rows of a machine, one budget of cores, one memory for CPU and device.
#include "core/machine/lanes.hpp"

#include <gmock/gmock.h>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scenario/capacity.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

TEST(Lanes, PlacesAndNamesTellThemApart) {
  std::set<std::string> names;
  for (std::size_t place = 0; place < kLaneCount; ++place) {
    const LaneIndex lane = LaneIndex::at(place);
    EXPECT_EQ(lane.place(), place);
    EXPECT_EQ(LaneIndex(lane.kind(), lane.number()), lane);
    names.insert(name_of(lane));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kLaneCount));
  EXPECT_EQ(name_of(LaneIndex(Engine::Compute)), "compute") << "as older logs and reports call the one there was";
  EXPECT_EQ(LaneIndex(Engine::Loader).place(), 11u) << "likewise";
  EXPECT_EQ(name_of(LaneIndex(Engine::CpuOptimizer, 2)), "cpu_optimizer.2");
}

TEST(Lanes, OneOfEachKindUnlessAMachineHasMore) {
  HardwareProfile machine = testing::round_machine(1 << 20);
  EXPECT_EQ(lane_count(machine, Engine::Compute), 1);
  machine.lanes[Engine::Compute] = {2, 0};
  EXPECT_EQ(lane_count(machine, Engine::Compute), 2);
  EXPECT_EQ(lane_count(machine, Engine::H2D), 1);
}

TEST(Lanes, TeamsClaimCoresAndNothingElseDoes) {
  HardwareProfile machine = testing::round_machine(1 << 20);  // 8 cores
  EXPECT_EQ(claimed_cores(machine, Engine::CpuOptimizer), 8);
  EXPECT_EQ(claimed_cores(machine, Engine::CpuCompute), 8) << "two teams of all cores take turns";
  EXPECT_EQ(claimed_cores(machine, Engine::Compute), 0);
  EXPECT_EQ(claimed_cores(machine, Engine::DiskRead), 0);
  machine.lane_cores[Engine::CpuOptimizer] = 7;  // as calibration finds it: a core is left to hand commands over
  EXPECT_EQ(claimed_cores(machine, Engine::CpuOptimizer), 7);
  machine.lanes[Engine::CpuOptimizer] = {2, 3};
  EXPECT_EQ(claimed_cores(machine, Engine::CpuOptimizer), 3);
  machine.lanes[Engine::CpuOptimizer] = {1, 100};
  EXPECT_EQ(claimed_cores(machine, Engine::CpuOptimizer), 8) << "no more than there are";
}

constexpr const char* kScenario =
    "workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 100, sequence: 16, batch: 2}\n"
    "policy: {name: zero_offload}\n";

HardwareProfile machine_of(const std::string& changes) {
  return parse_scenario("machine: {derive_from: round_numbers, name: x" + changes + "}\n" + kScenario, "s.yaml", {},
                        ".")
      .machine;
}

TEST(Lanes, ATeamOfSomeCoresIsAsMuchSlower) {
  const HardwareProfile whole = machine_of(""), half = machine_of(", lanes: [{lane: cpu_optimizer, count: 2, cores: " +
                                                                  std::to_string(whole.cores / 2) + "}]");
  EXPECT_DOUBLE_EQ(half.cpu_optimizer_parameters_per_s, whole.cpu_optimizer_parameters_per_s / 2);
  EXPECT_EQ(half.cpu_flops, whole.cpu_flops) << "another lane's";
}

std::string refusal(const std::string& text) {
  try {
    parse_profile(text, "m.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kRest =
    "compute: {peak: {fp32: 1TFLOPS}}\ncopies: {h2d: {bandwidth: 1GB/s}, d2h: {bandwidth: 1GB/s}}\n"
    "cpu: {cores: 4, peak: 100GFLOPS, optimizer: {rate: 1Gparameters/s}}\nloader: {bandwidth: 2GB/s}\n";

TEST(Lanes, WhatAMachineCannotHaveIsRefusedByName) {
  const std::string device = "  device: {capacity: 1GiB, bandwidth: 100GB/s}\n",
                    host = "  host_pinned: {capacity: 4GiB, bandwidth: 20GB/s}\n";
  const std::string head = "name: m\ntiers:\n";
  EXPECT_EQ(refusal(head + device + host + kRest), "");
  EXPECT_EQ(refusal(head + "  one_pool: true\n" + device + kRest), "");
  EXPECT_THAT(refusal(head + device + kRest), ::testing::HasSubstr("allowed: tiers.host_pinned, or tiers.one_pool"));
  EXPECT_THAT(refusal(head + "  one_pool: true\n" + device + host + kRest),
              ::testing::HasSubstr("m.yaml:3:13: tiers.one_pool: the machine has host memory beside the device's"));
  EXPECT_THAT(refusal(head + device + host + "  host_pageable: {capacity: 4GiB, bandwidth: 20GB/s}\n" + kRest),
              ::testing::HasSubstr("needs copies.pageable_h2d"));
  for (const char* wrong : {"{lane: h2d, count: 2}", "{lane: compute, count: 5}", "{lane: compute, count: 0}",
                            "{count: 2}", "{lane: cpu_optimizer, cores: -1}"}) {
    SCOPED_TRACE(wrong);
    EXPECT_THAT(refusal(head + device + host + kRest + "lanes: [" + wrong + "]\n"), ::testing::HasSubstr("allowed"));
  }
}

TEST(Lanes, TheHostIsOneStretchOfWhichTheFirstBytesArePinned) {
  Scenario s = testing::gpt_scenario("resident", 1 << 20);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 100 << 20;
  EXPECT_EQ(pinned_capacity_bytes(s.machine, 1), kAllPinned);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPageable)].capacity_bytes = 50 << 20;
  EXPECT_EQ(tier_capacity_bytes(s, Tier::HostPinned), 150 << 20);
  EXPECT_EQ(tier_capacity_bytes(s, Tier::HostPageable), 0);
  EXPECT_EQ(pinned_capacity_bytes(s.machine, 1), 100 << 20);
  EXPECT_EQ(pinned_capacity_bytes(s.machine, 4), 25 << 20) << "ranks share both";
}

}  // namespace
}  // namespace tandem
