// Ranks that have a part of each layer's states, or of its parameters too: whole simulated runs.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kGB = 1'000'000'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Two layers of 1 GB that compute 10 ms forward, 20 ms backward, and update in 100 ms. Copies and rings: 10 GB/s.
Scenario two_layers(const char* partition) {
  Scenario scenario = layers_scenario("zero_offload", 16 * kGiB, 2, kGB, 10 * kMs, 20 * kMs, 100 * kMs);
  scenario.workload.devices = 2;
  scenario.workload.partition = partition;
  scenario.steps = 5;
  return scenario;
}

std::int64_t step_ns(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return std::llround(analyse(simulation.record()).step_s.median * 1e9);
}

TEST(Partition, WholeStatesOnEveryRank) {
  // Forwards 0 to 20 ms, backwards to 40 and 60. Rings of 2 x 1/2 x 1 GB, 100 ms each, to 140 and 240; gradients to the
  // host to 240 and 340; updates, the lower layer first, to 440 and 540; parameters back to 540 and 640.
  EXPECT_EQ(step_ns(two_layers("none")), 640 * kMs);
}

TEST(Partition, APartOfTheStatesOnEachRank) {
  // All-gathers of 1/2 x 1 GB to 50 and 100 ms; forwards to 60 and 110, backwards to 130 and 150. Reduce-scatters to
  // 180 and 230; halves of the gradients to the host to 230 and 280; halves of the updates to 330 and 380; halves of
  // the parameters back to 380 and 430.
  EXPECT_EQ(step_ns(two_layers("states")), 430 * kMs);
}

TEST(Partition, APartOfTheParametersOnEachRank) {
  // As above to the upper layer's backward, 130 ms, which needs no second all-gather. The lower layer's is from 100 to
  // 150, its backward to 170; reduce-scatters to 200 and 250, gradients to 250 and 300, updates to 350 and 400,
  // parameters to 400 and 450.
  EXPECT_EQ(step_ns(two_layers("parameters")), 450 * kMs);
}

// Two micro-batches, all on the device. All-gathers to 50 and 100 ms; forwards and backwards to 150 and, of the second,
// to 170, 190 and 210; reduce-scatters to 240 and 290; the lower layer's update to 340, when its next all-gather
// begins.
TEST(Partition, APartOfTheOptimizerOnEachRank) {
  Scenario scenario = two_layers("optimizer");
  scenario.policy.name = "resident";
  scenario.workload.micro_batches = 2;
  EXPECT_EQ(step_ns(scenario), 340 * kMs);
  // Reduce-scatters of the first micro-batch, too, to 180 and 230, and then to 280. Parts are added up where computing
  // stands, in 1.5 ms, before the lower layer's backward to 301.5; its reduce-scatter to 351.5, sum to 353, and update.
  scenario.workload.partition = "states";
  EXPECT_EQ(step_ns(scenario), 403 * kMs);
}

// Two hosts of two devices, whose network cards give 1 GB/s each.
TEST(Partition, NeighboursDivideAndHostsReduce) {
  Scenario scenario = two_layers("states");
  scenario.policy.name = "resident";
  scenario.workload.devices = 4;
  scenario.machine.devices_per_host = 2;
  scenario.machine.network_bytes_per_s = 1e9;
  // Rings of four leave a host by two cards: 3/4 of 1 GB takes 375 ms. All-gathers to 375 and 750 ms, the upper layer's
  // passes to 780, reduce-scatters to 1155 and 1530, the lower layer's update of a fourth to 1555.
  EXPECT_EQ(step_ns(scenario), 1555 * kMs);
  // Rings within a host take 50 ms; to the other one goes the half that a rank has, by its card, in 500 ms. All-gathers
  // to 50 and 100, passes to 130 and 150, the upper layer's gradient to 180 and 680, the lower's to 730 and 1230, its
  // update of a half to 1280.
  scenario.workload.parallel["shard"] = 2;
  EXPECT_EQ(step_ns(scenario), 1280 * kMs);
}

TEST(Partition, FoldsToTheSameTime) {
  for (const char* partition : {"optimizer", "states", "parameters"})
    for (const std::int64_t shard : {2, 4}) {
      Scenario scenario = gpt_scenario("resident", kGiB);
      scenario.workload.devices = 4;
      scenario.workload.micro_batches = 2;
      scenario.workload.partition = partition;
      scenario.workload.parallel["shard"] = shard;
      scenario.machine.devices_per_host = 2;
      scenario.machine.network_bytes_per_s = 1e9;
      scenario.machine.collective_latency_ns = 20'000;
      const double unfolded = static_cast<double>(step_ns(scenario));
      scenario.parallel.fold = true;
      EXPECT_NEAR(static_cast<double>(step_ns(scenario)), unfolded, 1e-6 * unfolded) << partition << ' ' << shard;
    }
}

TEST(Partition, WhatEachRankHolds) {
  const auto peaks = [](const char* partition) {
    const Scenario scenario = two_layers(partition);
    Simulation simulation(scenario);
    simulation.run();
    return simulation.record().ranks[1].peak_bytes;
  };
  const auto whole = peaks("none"), states = peaks("states"), parameters = peaks("parameters");
  const auto host = [](const auto& of_rank) { return of_rank[static_cast<std::size_t>(Tier::HostPinned)]; };
  const auto device = [](const auto& of_rank) { return of_rank[static_cast<std::size_t>(Tier::Device)]; };
  constexpr std::int64_t kPages = 16 * kPageBytes;  // small values take whole ones
  EXPECT_GE(2 * host(states), host(whole));
  EXPECT_LE(2 * host(states), host(whole) + kPages);
  EXPECT_EQ(host(parameters), host(states));
  EXPECT_LE(device(parameters), device(states));
}

// Eight layers: of the parameters, only those near their use are whole on the device.
TEST(Partition, ParametersOfManyLayersAreWholeInTurn) {
  const auto fits = [](const char* partition, std::int64_t device_bytes) {
    Scenario scenario = layers_scenario("zero_offload", device_bytes, 8, 64 * kMiB, kMs, kMs, kMs);
    scenario.workload.devices = 4;
    scenario.workload.partition = partition;
    scenario.policy.options["parameters"] = "device";  // nothing is evicted
    try {
      Simulation(scenario).run();
      return true;
    } catch (const DoesNotFit&) {
      return false;
    }
  };
  // Own parts 128 MiB, and so much that is whole: 512 MiB of all layers, or a few layers' of 64.
  EXPECT_FALSE(fits("states", 512 * kMiB));
  EXPECT_TRUE(fits("parameters", 512 * kMiB));
  EXPECT_TRUE(fits("states", 1024 * kMiB));
}

TEST(Partition, EveryPolicyKeepsBytesInOrder) {
  int runs = 0;
  for (const PolicyEntry* policy : policies())
    for (const char* partition : {"optimizer", "states", "parameters"})
      for (const double clip_norm : {0.0, 1.0}) {
        Scenario scenario = gpt_scenario(std::string(policy->name), 8 * kMiB);
        scenario.workload.devices = clip_norm > 0 ? 4 : 3;
        if (clip_norm > 0) scenario.workload.parallel["shard"] = 2;
        scenario.workload.micro_batches = 2;
        scenario.workload.precision = clip_norm > 0 ? DType::BF16 : DType::F32;
        scenario.workload.partition = partition;
        scenario.workload.recompute = clip_norm > 0 ? "block" : "none";
        scenario.optimizer.clip_norm = clip_norm;
        scenario.truth.noise = 0.3;
        std::unique_ptr<Simulation> simulation;
        try {
          simulation = std::make_unique<Simulation>(scenario);
        } catch (const ConfigError&) {  // a policy that cannot
          continue;
        }
        const std::vector<CheckedRank> ranks = run_checked(*simulation);
        EXPECT_EQ(ranks.size(), clip_norm > 0 ? 4U : 3U);
        for (const CheckedRank& rank : ranks) {
          EXPECT_EQ(rank.violation, "") << policy->name << ' ' << partition;
          EXPECT_GT(rank.checked, 100) << policy->name;
        }
        ++runs;
      }
  EXPECT_GE(runs, 6 * 14);
}

}  // namespace
}  // namespace tandem::testing
