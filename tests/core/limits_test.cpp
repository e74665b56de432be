// Limits change the machine that is simulated, not only the one that is trained on.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

constexpr const char* kScenario =
    "machine: round_numbers\n"
    "workload: {family: layers, layers: 2, layer_bytes: 1MiB, forward: 1ms, backward: 1ms, optimizer: 1ms}\n"
    "policy: {name: on_demand}\n";

TEST(Limits, FewerCoresUpdateMoreSlowly) {
  const Scenario whole = parse_scenario(kScenario, "whole.yaml");
  const Scenario half = parse_scenario(kScenario, "half.yaml", {"limits.cores=4"});
  EXPECT_EQ(whole.machine.cores, 8);
  EXPECT_EQ(half.machine.cores, 4);
  EXPECT_DOUBLE_EQ(half.machine.cpu_optimizer_parameters_per_s, whole.machine.cpu_optimizer_parameters_per_s / 2);
  EXPECT_DOUBLE_EQ(half.machine.cpu_flops, whole.machine.cpu_flops / 2);
  // The text that a log's header holds gives the same machine again.
  EXPECT_DOUBLE_EQ(parse_scenario(half.text, "again.yaml").machine.cpu_flops, half.machine.cpu_flops);
}

// Memory serves four threads nearly as well as eight; one of a lane's threads less for each core less.
TEST(Limits, FewerThreadsUpdateAtTheRateThatTheProfileHasForThem) {
  const std::string threads = "machine.cpu.optimizer.threads=[[1, 0.25], [4, 0.75], [8, 1]]";
  const Scenario whole = parse_scenario(kScenario, "whole.yaml", {threads});
  const Scenario half = parse_scenario(kScenario, "half.yaml", {threads, "limits.cores=4"});
  EXPECT_DOUBLE_EQ(half.machine.cpu_optimizer_parameters_per_s, 0.75 * whole.machine.cpu_optimizer_parameters_per_s);
  EXPECT_DOUBLE_EQ(half.machine.cpu_flops, whole.machine.cpu_flops / 2);

  const std::string lane = "machine.host.lane_cores=[{lane: cpu_optimizer, cores: 5}]";
  const Scenario five = parse_scenario(kScenario, "five.yaml", {threads, lane});
  const Scenario one = parse_scenario(kScenario, "one.yaml", {threads, lane, "limits.cores=4"});
  EXPECT_DOUBLE_EQ(one.machine.cpu_optimizer_parameters_per_s,
                   five.machine.cpu_optimizer_parameters_per_s * 0.25 / five.machine.cpu_optimizer_threads.at(5));
  EXPECT_EQ(one.machine.lane_cores.at(Engine::CpuOptimizer), 1);
}

// Four ranks, of which two share a host.
TEST(Limits, RanksShareTheirHost) {
  const std::vector<std::string> links = {"machine.copies.host_bandwidth=12GB/s", "machine.host.devices=2"};
  const Scenario one = parse_scenario(kScenario, "one.yaml", links);
  EXPECT_EQ(one.machine.h2d.bytes_per_s, 10e9);
  std::vector<std::string> four = links;
  four.push_back("workload.devices=4");
  const Scenario ranks = parse_scenario(kScenario, "ranks.yaml", four);
  EXPECT_EQ(ranks_on_host(ranks), 2);
  EXPECT_EQ(ranks.machine.h2d.bytes_per_s, 6e9);
  EXPECT_EQ(ranks.machine.d2h.bytes_per_s, 6e9);
  EXPECT_EQ(ranks.machine.cores, 4);
  EXPECT_DOUBLE_EQ(ranks.machine.cpu_optimizer_parameters_per_s, one.machine.cpu_optimizer_parameters_per_s / 2);
  EXPECT_EQ(ranks_on_host(parse_scenario(kScenario, "all.yaml", {"workload.devices=4"})), 4);
}

// 0B: the run does without a disk, as no other limit can be.
TEST(Limits, NoDisk) {
  EXPECT_GT(tier_capacity_bytes(parse_scenario(kScenario, "disk.yaml", {}), Tier::Disk), 0);
  EXPECT_EQ(tier_capacity_bytes(parse_scenario(kScenario, "none.yaml", {"limits.disk_bytes=0B"}), Tier::Disk), 0);
  EXPECT_EQ(tier_capacity_bytes(parse_scenario(kScenario, "some.yaml", {"limits.disk_bytes=5B"}), Tier::Disk), 5);
  for (const char* limit : {"limits.device_bytes=0B", "limits.host_bytes=0B"})
    EXPECT_THROW(parse_scenario(kScenario, "zero.yaml", {limit}), ConfigError) << limit;
}

// Copies of 16 MiB reach the limit, as those that reach the bus do; small ones keep what latency leaves them.
TEST(Limits, CopiesAreNoFasterThanTheirLimit) {
  const std::string curve = "machine.copies.h2d.efficiency=[[64KiB, 0.25], [16MiB, 1]]";
  const Scenario whole = parse_scenario(kScenario, "whole.yaml", {curve});
  const Scenario half = parse_scenario(kScenario, "half.yaml", {curve, "limits.h2d=5GB/s"});
  EXPECT_DOUBLE_EQ(whole.machine.h2d.bytes_per_s, 10e9);
  EXPECT_DOUBLE_EQ(half.machine.h2d.bytes_per_s, 5e9);
  EXPECT_DOUBLE_EQ(half.machine.h2d.efficiency.at(16 << 20), 1);
  EXPECT_DOUBLE_EQ(half.machine.h2d.efficiency.at(64 << 10), 0.5) << "a quarter of 10 GB/s is half of 5";
  EXPECT_DOUBLE_EQ(half.machine.d2h.bytes_per_s, whole.machine.d2h.bytes_per_s);
  const Scenario more = parse_scenario(kScenario, "more.yaml", {"limits.d2h=1TB/s"});
  EXPECT_DOUBLE_EQ(more.machine.d2h.bytes_per_s, whole.machine.d2h.bytes_per_s);
  EXPECT_EQ(more.warnings.back(),
            "limits.d2h: 1000000000000 is more than the 10000000000 of round_numbers; it limits nothing");
}

}  // namespace
}  // namespace tandem
