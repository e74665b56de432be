// What a scenario says of many machines: slow ranks, hosts and the links between them. Wrong ones are told with their
// place.
#include "core/machine/topology.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

const std::string kTwoRanks =
    "machine: {derive_from: m, collective: {bandwidth: 1GB/s}}\n"
    "workload: {family: layers, layers: 2, layer_bytes: 64B, forward: 1ms, backward: 1ms, optimizer: 1ms}\n";

TEST(Stragglers, AreRanksThatAreThere) {
  EXPECT_EQ(scenario_error(kTwoRanks + "parallel: {data: 2}\ntruth: {stragglers: [{rank: 1, factor: 1.5}]}\n"), "");
  EXPECT_EQ(scenario_error(kTwoRanks + "parallel: {data: 2}\ntruth:\n  stragglers:\n  - {rank: 2, factor: 1.5}\n"),
            "bad.yaml:6:12: truth.stragglers.0.rank: there are 2 ranks; allowed: 0 to 1");
  EXPECT_EQ(scenario_error(kTwoRanks + "truth: {stragglers: [{rank: 0, factor: 2}, {rank: 0, factor: 3}]}\n"),
            "bad.yaml:3:51: truth.stragglers.1.rank: is slow already; allowed: each rank once");
  EXPECT_EQ(scenario_error(kTwoRanks + "truth: {stragglers: [{rank: 0, factor: 0.5}]}\n"),
            "bad.yaml:3:40: truth.stragglers.0.factor: '0.5' is too small; allowed: a number from 1 to 1000");
}

TEST(Stragglers, AreNotFolded) {
  const std::string error =
      scenario_error(kTwoRanks + "parallel: {data: 2, fold: true}\ntruth: {stragglers: [{rank: 0, factor: 2}]}\n");
  EXPECT_NE(error.find("parallel.fold: ranks are alike only where none is slow"), std::string::npos) << error;
}

// A profile's first lines, and what stands behind them from line 7 on.
std::string profile_with(const std::string& more) {
  return "tiers: {device: {capacity: 1GiB, bandwidth: 100GB/s}, host_pinned: {capacity: 8GiB, bandwidth: 20GB/s}}\n"
         "compute: {peak: {fp32: 1TFLOPS}}\n"
         "copies: {h2d: {bandwidth: 10GB/s}, d2h: {bandwidth: 10GB/s}}\n"
         "cpu: {cores: 4, peak: 100GFLOPS, optimizer: {rate: 1Gparameters/s}}\n"
         "loader: {bandwidth: 1GB/s}\n"
         "host: {devices: 4}\n" +
         more;
}

const std::string kCards = "  nvlink: {bandwidth: 100GB/s}\n  nics: {count: 2, bandwidth: 10GB/s}\n";

TEST(Topology, ReadsHostsAndATree) {
  const std::string text =
      profile_with("collective: {bandwidth: 1GB/s, algorithm: halving_doubling}\ntopology:\n" + kCards +
                   "  fat_tree: {rails: true, leaf: {down: 4, oversubscription: 2, latency: 1us}, spine: {down: 6}}\n");
  EXPECT_EQ(profile_error(text), "");
  const std::shared_ptr<const Topology> t = read_profile(text, "good.yaml", fixed_names()).topology;
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->devices_per_host, 4);
  EXPECT_EQ(t->algorithm, CollectiveAlgorithm::HalvingDoubling);
  ASSERT_EQ(t->levels.size(), 2U);
  EXPECT_EQ(t->levels[0].up.bytes_per_s, 20e9) << "half of four cards' 10 GB/s";
  EXPECT_EQ(t->levels[0].up.latency_ns, 1000);
  EXPECT_EQ(t->most_hosts(), 12) << "three pairs of leaf switches, four hosts each";
}

TEST(Topology, WithoutOneThereIsNone) {
  EXPECT_EQ(read_profile(profile_with(""), "good.yaml", fixed_names()).topology, nullptr);
  EXPECT_EQ(
      profile_error(profile_with("collective: {bandwidth: 1GB/s, algorithm: tree}\n")),
      "bad.yaml:7:43: collective.algorithm: the machine has no topology for it to go by; allowed: auto, or a machine "
      "with topology");
}

TEST(Topology, SaysWhatDoesNotGoTogether) {
  const auto error = [](const std::string& more) { return profile_error(profile_with("topology:\n" + more)); };
  EXPECT_EQ(error("  nvlink: {bandwidth: 100GB/s}\n  nics: {count: 5, bandwidth: 10GB/s}\n"),
            "bad.yaml:9:17: topology.nics.count: a host has 4 of host.devices; allowed: at most as many");
  EXPECT_EQ(error("  nics: {count: 1, bandwidth: 10GB/s}\n"),
            "bad.yaml:8:17: topology.nics.count: nothing joins a host's 4 devices; allowed: beside nvlink or pcie");
  EXPECT_EQ(
      error("  pcie: {bandwidth: 10GB/s, devices_per_switch: 2}\n"),
      "bad.yaml:8:49: topology.pcie.devices_per_switch: nothing joins a host's switches; allowed: with pcie.uplink or "
      "nvlink");
  EXPECT_EQ(error("  nvlink: {bandwidth: 100GB/s}\n  fat_tree: {leaf: {down: 4}}\n"),
            "bad.yaml:9:27: topology.fat_tree.leaf.down: hosts have no cards; allowed: beside nics");
  EXPECT_EQ(error(kCards + "  fat_tree: {leaf: {down: 4}}\n  torus: {dimensions: [2, 2], bandwidth: 1GB/s}\n"),
            "bad.yaml:11:42: topology.torus.bandwidth: hosts are joined by a fat_tree, too; allowed: one of both");
  EXPECT_EQ(
      error(kCards + "  fat_tree: {leaf: {down: 4}, spine: {down: 2}}\n"),
      "bad.yaml:10:27: topology.fat_tree.leaf.down: nothing says what goes up; allowed: beside up and bandwidth, or "
      "oversubscription");
  EXPECT_EQ(
      error(kCards + "  fat_tree: {leaf: {down: 4, up: 2, bandwidth: 1GB/s, oversubscription: 2}, spine: {down: 2}}\n"),
      "bad.yaml:10:34: topology.fat_tree.leaf.up: oversubscription says what goes up; allowed: one of both\n"
      "bad.yaml:10:48: topology.fat_tree.leaf.bandwidth: oversubscription says what goes up; allowed: one of both");
  EXPECT_EQ(
      error(kCards + "  fat_tree: {leaf: {down: 4, up: 2, bandwidth: 1GB/s}}\n"),
      "bad.yaml:10:34: topology.fat_tree.leaf.up: there is no level above it; allowed: none of it, or a level above\n"
      "bad.yaml:10:48: topology.fat_tree.leaf.bandwidth: there is no level above it; allowed: none of it, or a level "
      "above");
  EXPECT_EQ(
      error(kCards + "  fat_tree: {rails: true, leaf: {down: 4}}\n"),
      "bad.yaml:10:21: topology.fat_tree.rails: nothing joins the leaf switches of a host's cards; allowed: false, "
      "or with a spine");
  EXPECT_EQ(error(kCards + "  fat_tree: {leaf: {down: 4}, core: {down: 2}}\n"),
            "bad.yaml:10:44: topology.fat_tree.core.down: there is no spine below it; allowed: all levels below");
}

// Neither collective.bandwidth nor copies.peer is needed: the links say it.
TEST(Topology, HasRoomForAllDevices) {
  const std::string machine =
      "machine:\n  derive_from: m\n"
      "  host: {devices: 2}\n"
      "  topology: {nvlink: {bandwidth: 10GB/s}, nics: {count: 1, bandwidth: 1GB/s}, fat_tree: {leaf: {down: 3}}}\n"
      "workload: {family: layers, layers: 2, layer_bytes: 64B, forward: 1ms, backward: 1ms, optimizer: 1ms}\n";
  EXPECT_EQ(scenario_error(machine + "parallel: {data: 6}\n"), "");
  EXPECT_EQ(
      scenario_error(machine + "parallel: {data: 7}\n"),
      "bad.yaml:6:18: parallel.data: 7 devices are 4 hosts, and the machine's topology joins 3; allowed: at most 6 "
      "devices");
}

}  // namespace
}  // namespace tandem::test
