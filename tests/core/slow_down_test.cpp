// How lanes share host memory and slow each other down, and what that makes of a shared update, on round numbers.
#include "core/machine/slow_down.hpp"

#include <gtest/gtest.h>

#include "core/policies/common/update_costs.hpp"

namespace tandem {
namespace {

constexpr std::uint16_t kAll = engine_bit(Engine::CpuOptimizer) | engine_bit(Engine::H2D) | engine_bit(Engine::D2H);

// 60 GB/s of memory, of which each copy wants 20 and the CPU's update 80.
HardwareProfile machine() {
  HardwareProfile profile;
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 60e9;
  profile.h2d.bytes_per_s = profile.d2h.bytes_per_s = 20e9;
  return profile;
}

double factor(const HardwareProfile& profile, Engine lane, std::uint16_t busy = kAll) {
  return slow_downs(profile, memory_rates_alone(profile, 80e9), busy)[static_cast<std::size_t>(lane)];
}

// Equal shares are 20 GB/s each: all that a copy wants, a quarter of what the CPU does.
TEST(SlowDown, LanesWithoutWeightsShareMemoryEqually) {
  EXPECT_DOUBLE_EQ(factor(machine(), Engine::H2D), 1);
  EXPECT_DOUBLE_EQ(factor(machine(), Engine::CpuOptimizer), 4);
}

// By what they want, half of it each.
TEST(SlowDown, LanesWithWeightsShareMemoryByWhatTheyWant) {
  HardwareProfile profile = machine();
  profile.memory_weights = {{Engine::H2D, {1.0}}};
  EXPECT_DOUBLE_EQ(factor(profile, Engine::H2D), 2);
  EXPECT_DOUBLE_EQ(factor(profile, Engine::CpuOptimizer), 2);
}

// A byte of the update costs 1.5, one from the device a half. By what they want, of 60: x = 60 / (1.5 * 80 + 20 + 10),
// so each gets 0.4 of it.
TEST(SlowDown, WhatABytesCostsIsTakenFromTheBandwidth) {
  HardwareProfile profile = machine();
  profile.memory_weights = {{Engine::CpuOptimizer, {1, 1.5}}, {Engine::D2H, {1, 0.5}}};
  for (const Engine lane : {Engine::CpuOptimizer, Engine::H2D, Engine::D2H})
    EXPECT_DOUBLE_EQ(factor(profile, lane), 2.5) << name_of(lane);
  // All that a copy wants, 10 of the 60; the rest as 120 to 20.
  profile.memory_weights[Engine::D2H].weight = 100;
  EXPECT_DOUBLE_EQ(factor(profile, Engine::D2H), 1);
  EXPECT_DOUBLE_EQ(factor(profile, Engine::CpuOptimizer), 140.0 / 50);
  EXPECT_DOUBLE_EQ(factor(profile, Engine::H2D), 140.0 / 50);
  // Alone, the update fills the memory with 40 GB/s.
  EXPECT_DOUBLE_EQ(factor(profile, Engine::CpuOptimizer, engine_bit(Engine::CpuOptimizer)), 2);
}

// The CPU alone finds 60 of its 80 GB/s; a copy that is slowed by half wants a third less.
TEST(SlowDown, OnlyBusyLanesCount) {
  HardwareProfile profile = machine();
  EXPECT_DOUBLE_EQ(factor(profile, Engine::CpuOptimizer, engine_bit(Engine::CpuOptimizer)), 80.0 / 60);
  profile.interference[{Engine::H2D, Engine::CpuOptimizer}] = 1.5;
  EXPECT_DOUBLE_EQ(factor(profile, Engine::H2D), 1.5);
  EXPECT_DOUBLE_EQ(factor(profile, Engine::CpuOptimizer), 80 / (60 - 20 / 1.5 - 20));
}

// A copy at a third of its speed keeps kernels waiting three times as long; lanes that are not busy, not at all.
TEST(SlowDown, KernelsStartLaterAsLanesThatKeepThemWaitingAreSlowed) {
  HardwareProfile profile = machine();
  profile.launches_beside = {{Engine::H2D, {0.2, 0.05, 1.1}}, {Engine::CpuOptimizer, {0.1, 0, 1.5}}};
  std::array<double, kEngineCount> factors;
  factors.fill(1);
  factors[static_cast<std::size_t>(Engine::H2D)] = 3;
  const std::uint16_t copies = engine_bit(Engine::H2D) | engine_bit(Engine::D2H);
  EXPECT_DOUBLE_EQ(later_starts(profile, factors, copies, /*recorded=*/false), 0.6);
  EXPECT_DOUBLE_EQ(later_starts(profile, factors, copies, /*recorded=*/true), 0.15);
  EXPECT_DOUBLE_EQ(later_starts(profile, factors, kAll, /*recorded=*/false), 0.7);
  EXPECT_DOUBLE_EQ(slower_launch(profile, copies), 1.1);
  EXPECT_DOUBLE_EQ(slower_launch(profile, kAll), 1.6);
  EXPECT_DOUBLE_EQ(slower_launch(profile, 0), 1);
}

// A third on the device: the bus takes 4/3 for states and 2/3 for parameters, the CPU 2/3 of 3. Two thirds if the CPU
// begins two later: 8/3 + 1/3 on the bus, 2 + 1 on the CPU.
TEST(UpdateCosts, BothSidesEndTogether) {
  UpdateCosts costs;
  costs.stream_ns = 4, costs.upload_ns = 1, costs.cpu_ns = 3;
  EXPECT_DOUBLE_EQ(costs.device_share(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(costs.device_share(2), 2.0 / 3);
  EXPECT_DOUBLE_EQ(costs.device_share(10), 1);
  EXPECT_DOUBLE_EQ(costs.device_share(-10), 0);
}

}  // namespace
}  // namespace tandem
