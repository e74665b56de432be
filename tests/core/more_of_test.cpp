// More of each resource, as a user would set it.
#include "core/run/more_of.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/machine/topology.hpp"
#include "core/run/load.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

constexpr const char* kText =
    "machine: round_numbers\n"
    "workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, batch: 2}\n"
    "policy: {name: on_demand}\n";

Scenario scenario(const Texts& settings = {}) { return parse_scenario(kText, "case.yaml", settings); }

Texts settings_of(const Scenario& of, const std::string& resource) {
  for (const MoreOf& more : more_of_each(of, 1.1))
    if (more.resource == resource) return more.settings;
  return {};
}

TEST(MoreOf, EachResourceThatTheMachineHas) {
  Texts names;
  for (const MoreOf& more : more_of_each(scenario(), 1.1)) names.push_back(more.resource);
  EXPECT_THAT(names, ElementsAre("compute", "device_bandwidth", "h2d", "d2h", "pcie", "cpu", "dram", "host", "disk",
                                 "device_memory", "host_memory"));
  EXPECT_TRUE(settings_of(scenario({"limits.disk_bytes=0B"}), "disk").empty());
  EXPECT_THAT(settings_of(scenario({"workload.devices=2"}), "links"),
              ElementsAre("machine.collective.bandwidth=11GB/s", "machine.copies.peer.bandwidth=11GB/s"));
}

// What a topology's links carry is asked of them; levels with oversubscription follow.
TEST(MoreOf, LinksOfATopology) {
  const Texts cluster{"workload.devices=4", "machine.host.devices=2",
                      "machine.topology={nvlink: {bandwidth: 100GB/s}, nics: {count: 2, bandwidth: 10GB/s}, fat_tree: "
                      "{leaf: {down: 4, up: 2, "
                      "bandwidth: 20GB/s}, spine: {down: 2, oversubscription: 2}, core: {down: 2}}}"};
  EXPECT_THAT(settings_of(scenario(cluster), "links"),
              ElementsAre("machine.topology.nvlink.bandwidth=110GB/s", "machine.topology.nics.bandwidth=11GB/s",
                          "machine.topology.fat_tree.leaf.bandwidth=22GB/s"));
  Texts more = cluster;
  for (const std::string& setting : settings_of(scenario(cluster), "links")) more.push_back(setting);
  const Topology now = *scenario(cluster).machine.topology, then = *scenario(more).machine.topology;
  EXPECT_NEAR(then.nvlink.bytes_per_s, 1.1 * now.nvlink.bytes_per_s, 1);
  for (const std::size_t level : {0U, 1U})
    EXPECT_NEAR(then.levels[level].up.bytes_per_s, 1.1 * now.levels[level].up.bytes_per_s, 1);
}

TEST(MoreOf, IsATenthMoreThanTheScenarioHas) {
  const Scenario now = scenario();
  const Scenario more = scenario(settings_of(now, "cpu"));
  EXPECT_DOUBLE_EQ(more.machine.cpu_optimizer_parameters_per_s, 1.1e9);
  EXPECT_DOUBLE_EQ(scenario(settings_of(now, "h2d")).machine.h2d.bytes_per_s, 11e9);
  EXPECT_DOUBLE_EQ(scenario(settings_of(now, "compute")).machine.peak_flops.at(DType::F32), 11e12);
}

// A tenth more of what a limit leaves: the limit grows, and the machine where it has no more.
TEST(MoreOf, ALimitGrows) {
  const auto with = [](Texts limits, const std::string& resource) {
    for (const std::string& setting : settings_of(scenario(limits), resource)) limits.push_back(setting);
    return scenario(limits);
  };
  EXPECT_NEAR(with({"limits.h2d=1GB/s"}, "h2d").machine.h2d.bytes_per_s, 1.1e9, 1);
  EXPECT_NEAR(with({"limits.h2d=1GB/s"}, "pcie").machine.h2d.bytes_per_s, 1.1e9, 1);
  EXPECT_NEAR(with({"limits.cores=4"}, "cpu").machine.cpu_optimizer_parameters_per_s, 0.55e9, 1);
  for (const char* limit : {"10GiB", "16GiB", "20GiB"}) {
    const Texts limits{std::string("limits.device_bytes=") + limit};
    const auto now = static_cast<double>(tier_memory_bytes(scenario(limits), Tier::Device));
    EXPECT_NEAR(static_cast<double>(tier_memory_bytes(with(limits, "device_memory"), Tier::Device)), 1.1 * now, 1)
        << limit;
  }
}

// What --set has made of the machine is what there is more of, however odd it is.
TEST(MoreOf, OfAMachineThatFlagsHaveChanged) {
  EXPECT_THAT(settings_of(scenario({"machine.copies.h2d.bandwidth=500MB/s"}), "h2d"),
              Contains("machine.copies.h2d.bandwidth=0.55GB/s"));
}

}  // namespace
}  // namespace tandem
