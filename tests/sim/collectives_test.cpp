// Collectives as flows over a topology's links: the alpha-beta closed forms of each algorithm on an idle network
// (Thakur, Rabenseifner, Gropp, 2005), and flows that share links.
#include "core/machine/collectives.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/machine/cost_model.hpp"
#include "sim/simgrid_platform.hpp"
#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

// The first run of a process decides how large its platform is.
class Collectives : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/16, /*devices_per_host=*/4, 1, 256); }
};

constexpr double kAlphaNs = 5'000, kBetaNs = 0.1;  // a message, a byte: links of 10 GB/s
constexpr LinkRate kLink{10e9, 5'000};

// Hosts of one device below one switch, or of several behind an NVSwitch.
Topology uniform(std::int64_t devices_per_host = 1) {
  Topology t;
  t.devices_per_host = t.devices_per_switch = devices_per_host;
  t.nics = devices_per_host;
  t.nic = kLink;
  t.levels = {{.down = 64, .up = {}}};
  if (devices_per_host > 1) t.nvlink = {100e9, 1'000};
  return t;
}

HardwareProfile machine_of(Topology topology) {
  HardwareProfile machine = round_machine();
  machine.devices_per_host = static_cast<std::int32_t>(topology.devices_per_host);
  machine.topology = std::make_shared<const Topology>(std::move(topology));
  return machine;
}

// Of one collective that all ranks begin at once.
std::int64_t simulated_ns(const Topology& topology, const char* body, Rank ranks, std::int64_t counted) {
  SimWorld world(machine_of(topology), Fidelity::Alone, ranks);
  std::vector<Rank> all;
  for (Rank rank = 0; rank < ranks; ++rank) all.push_back(rank);
  for (const Rank rank : all) world.together(body, 0, all, Engine::Collective, 0, counted, {}, rank);
  for (const Event& event : world.drain()) EXPECT_EQ(event.finished.ns, world.finished(0, 0));
  return world.finished(0, 0);
}

Topology with(CollectiveAlgorithm algorithm, Topology topology = uniform()) {
  topology.algorithm = algorithm;
  return topology;
}

constexpr std::int64_t kBytes = 16'000'000;
constexpr double kRounding = 1.5;  // ns a round

TEST_F(Collectives, RingAllReduce) {
  for (const Rank p : {2, 3, 4, 7, 16}) {
    const double expected = 2 * (p - 1) * kAlphaNs + 2.0 * (p - 1) / p * kBytes * kBetaNs;
    EXPECT_NEAR(static_cast<double>(simulated_ns(with(CollectiveAlgorithm::Ring), "all_reduce", p, 2 * kBytes)),
                expected, kRounding)
        << p;
  }
}

TEST_F(Collectives, RingReduceScatterAndAllGather) {
  for (const char* body : {"reduce_scatter", "all_gather"})
    for (const Rank p : {2, 5, 16}) {
      const double expected = (p - 1) * kAlphaNs + (p - 1.0) / p * kBytes * kBetaNs;
      EXPECT_NEAR(static_cast<double>(simulated_ns(with(CollectiveAlgorithm::Ring), body, p, kBytes)), expected,
                  kRounding)
          << body << ' ' << p;
    }
}

// Pipelined, as a double tree: up and down, each rank sends and receives all bytes once.
TEST_F(Collectives, TreeAllReduce) {
  for (const Rank p : {4, 8, 16}) {
    const double expected = 2 * std::log2(p) * kAlphaNs + 2.0 * kBytes * kBetaNs;
    EXPECT_NEAR(static_cast<double>(simulated_ns(with(CollectiveAlgorithm::Tree), "all_reduce", p, 2 * kBytes)),
                expected, 2 * kRounding)
        << p;
  }
}

TEST_F(Collectives, HalvingDoublingAllReduce) {
  for (const Rank p : {2, 4, 8, 16}) {
    const double expected = 2 * std::log2(p) * kAlphaNs + 2.0 * (p - 1) / p * kBytes * kBetaNs;
    EXPECT_NEAR(
        static_cast<double>(simulated_ns(with(CollectiveAlgorithm::HalvingDoubling), "all_reduce", p, 2 * kBytes)),
        expected, 2 * std::log2(p) * kRounding)
        << p;
  }
  // Of six ranks two hand theirs over before, and get the result after it.
  const double four = 4 * kAlphaNs + 1.5 * kBytes * kBetaNs, ends = 2 * (kAlphaNs + kBytes * kBetaNs);
  EXPECT_NEAR(
      static_cast<double>(simulated_ns(with(CollectiveAlgorithm::HalvingDoubling), "all_reduce", 6, 2 * kBytes)),
      four + ends, 6 * kRounding);
}

TEST_F(Collectives, AllToAll) {
  for (const Rank p : {2, 3, 8, 16}) {
    const double expected = (p - 1) * kAlphaNs + (p - 1.0) / p * kBytes * kBetaNs;
    EXPECT_NEAR(static_cast<double>(simulated_ns(with(CollectiveAlgorithm::Ring), "all_to_all", p, kBytes)), expected,
                p * kRounding)
        << p;
  }
}

// Reduce-scatter within hosts of four, all-reduce of a quarter across them, all-gather within.
TEST_F(Collectives, HierarchicalAllReduceIsTheSumOfItsStages) {
  const double m = 4, h = 4, inside_ns = 0.01;
  const double within = (m - 1) * 1'000 + (m - 1) / m * kBytes * inside_ns;
  const double across = 2 * (h - 1) * kAlphaNs + 2 * (h - 1) / h * kBytes / m * kBetaNs;
  EXPECT_NEAR(static_cast<double>(
                  simulated_ns(with(CollectiveAlgorithm::Hierarchical, uniform(4)), "all_reduce", 16, 2 * kBytes)),
              2 * within + across, 3 * kRounding);
}

// What crosses from host to host is divided among the hosts' four cards.
TEST_F(Collectives, RingsLeaveHostsByAllCards) {
  const double p = 16;
  const double ring =
      static_cast<double>(simulated_ns(with(CollectiveAlgorithm::Ring, uniform(4)), "all_reduce", 16, 2 * kBytes));
  EXPECT_NEAR(ring, 2 * (p - 1) * kAlphaNs + 2 * (p - 1) / p * kBytes * kBetaNs / 4, kRounding);
}

// NCCL's choice: a tree where messages are small, a ring where they are large.
TEST_F(Collectives, AutoTakesTheFasterOfRingAndTree) {
  for (const std::int64_t bytes : {1'000, 100'000'000}) {
    const std::int64_t ring = simulated_ns(with(CollectiveAlgorithm::Ring), "all_reduce", 16, 2 * bytes);
    const std::int64_t tree = simulated_ns(with(CollectiveAlgorithm::Tree), "all_reduce", 16, 2 * bytes);
    EXPECT_EQ(tree < ring, bytes == 1'000) << ring << ' ' << tree;
    EXPECT_EQ(simulated_ns(uniform(), "all_reduce", 16, 2 * bytes), std::min(ring, tree));
  }
}

// The estimates that schedulers see are those of idle links.
TEST_F(Collectives, EstimatesAreOfIdleLinks) {
  for (const CollectiveAlgorithm algorithm :
       {CollectiveAlgorithm::Auto, CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree,
        CollectiveAlgorithm::HalvingDoubling, CollectiveAlgorithm::Hierarchical}) {
    const HardwareProfile machine = machine_of(with(algorithm, uniform(4)));
    const CostModel cost(machine);
    Graph graph;
    Kernel kernel;
    kernel.bytes = 2 * kBytes;
    const WorkId work = graph.add_work({"all_reduce", DType::F32, {kBytes, 16, 4}, {kernel}});
    EXPECT_NEAR(static_cast<double>(cost.run_ns(graph, work, Engine::Collective)),
                static_cast<double>(simulated_ns(*machine.topology, "all_reduce", 16, 2 * kBytes)), 10 * kRounding);
  }
}

// Two pairs under one leaf switch send to two under another, by one uplink of 10 GB/s: each has half of it.
TEST_F(Collectives, ShareAnUplink) {
  Topology t = uniform();
  t.levels = {{.down = 2, .up = {10e9, 0}}, {.down = 2, .up = {}}};
  SimWorld world(machine_of(with(CollectiveAlgorithm::Ring, t)), Fidelity::Alone, 4);
  for (const Rank pair : {0, 1})
    for (const Rank rank : {pair, pair + 2})
      world.together("all_reduce", pair, {pair, pair + 2}, Engine::Collective, 0, 2 * kBytes, {}, rank);
  world.drain();
  const double alone = 2 * kAlphaNs + kBytes * kBetaNs;
  for (const Rank rank : {0, 1, 2, 3})
    EXPECT_NEAR(static_cast<double>(world.finished(0, rank)), alone + kBytes * kBetaNs, 2 * kRounding) << rank;
}

// As above, but the second pair comes when the first has sent half: 0.8 ms alone, then both at half speed. The first
// one ends after 1.6 ms more, the second has then half left, which it sends alone.
TEST_F(Collectives, ShareAnUplinkWhileBothAreThere) {
  Topology t = uniform();
  t.nic.latency_ns = 0;
  t.levels = {{.down = 2, .up = {10e9, 0}}, {.down = 2, .up = {}}};
  SimWorld world(machine_of(with(CollectiveAlgorithm::Ring, t)), Fidelity::Alone, 4);
  std::vector<CommandId> reduces;
  for (const Rank rank : {0, 1, 2, 3}) {
    const CommandId compute = world.run(Engine::Compute, rank % 2 == 0 ? 0 : 800'000, {}, rank);
    const Rank pair = rank % 2;
    reduces.push_back(
        world.together("all_reduce", pair, {pair, pair + 2}, Engine::Collective, 0, 2 * kBytes, {compute}, rank));
  }
  world.drain();
  EXPECT_NEAR(static_cast<double>(world.finished(reduces[0], 0)), 2'400'000, 2 * kRounding);
  EXPECT_NEAR(static_cast<double>(world.finished(reduces[1], 1)), 3'200'000, 2 * kRounding);
}

// What one rank sends to another goes by the same links: as a ring and a message that leave one card.
TEST_F(Collectives, MessagesShareLinksWithCollectives) {
  SimWorld world(machine_of(with(CollectiveAlgorithm::Ring)), Fidelity::Alone, 3);
  const std::vector<Rank> all{0, 1, 2};
  for (const Rank rank : all) world.together("all_gather", 0, all, Engine::Collective, 0, 3 * kBytes / 2, {}, rank);
  const CommandId sent = world.together("send", 1, {0, 1}, Engine::P2P, 0, kBytes, {}, 0);
  world.together("receive", 1, {0, 1}, Engine::P2P, 0, kBytes, {}, 1);
  world.drain();
  // Both move 16 MB from rank 0 to rank 1, from 5 and 10 us on: the message has 5 us alone, and ends first.
  EXPECT_NEAR(static_cast<double>(world.finished(sent, 0)), 5'000 + 2 * kBytes * kBetaNs - 5'000, 10);
  EXPECT_NEAR(static_cast<double>(world.finished(0, 0)), 5'000 + 2 * kBytes * kBetaNs, 10);
}

// A torus of 4 by 4 hosts: three steps away, along one dimension, are one step back.
TEST_F(Collectives, GoTheShorterWayRoundATorus) {
  Topology t;
  t.dimensions = {4, 4};
  t.torus = kLink;
  SimWorld world(machine_of(t), Fidelity::Alone, 16);
  const auto send = [&](std::int32_t group, Rank from, Rank to) {
    const CommandId id = world.together("send", group, {from, to}, Engine::P2P, 0, kBytes, {}, from);
    world.together("receive", group, {from, to}, Engine::P2P, 0, kBytes, {}, to);
    return id;
  };
  const CommandId back = send(0, 0, 3), far = send(1, 1, 11), beside = send(2, 9, 10);
  world.drain();
  EXPECT_NEAR(static_cast<double>(world.finished(back, 0)), kAlphaNs + kBytes * kBetaNs, kRounding);
  // From (1, 0) to (3, 2): two along the first dimension, two along the second.
  EXPECT_NEAR(static_cast<double>(world.finished(far, 1)), 4 * kAlphaNs + kBytes * kBetaNs, kRounding);
  EXPECT_NEAR(static_cast<double>(world.finished(beside, 9)), kAlphaNs + kBytes * kBetaNs, kRounding);
}

// Two devices under each of two PCIe switches: what crosses shares the switch's uplink.
TEST_F(Collectives, SharePcieUplinks) {
  Topology t;
  t.devices_per_host = 4;
  t.devices_per_switch = 2;
  t.pcie = kLink;
  t.pcie_uplink = {10e9, 0};
  SimWorld world(machine_of(t), Fidelity::Alone, 4);
  for (const Rank from : {0, 1}) {
    world.together("send", from, {from, from + 2}, Engine::P2P, 0, kBytes, {}, from);
    world.together("receive", from, {from, from + 2}, Engine::P2P, 0, kBytes, {}, from + 2);
  }
  world.drain();
  for (const Rank rank : {0, 1})
    EXPECT_NEAR(static_cast<double>(world.finished(0, rank)), kAlphaNs + 2 * kBytes * kBetaNs, 2 * kRounding);
}

TEST_F(Collectives, TakeLongerWithASlowRank) {
  Truth truth;
  truth.stragglers = {{.rank = 2, .factor = 2}};
  SimWorld world(machine_of(with(CollectiveAlgorithm::Ring)), Fidelity::Alone, 4, truth);
  const std::vector<Rank> all{0, 1, 2, 3};
  for (const Rank rank : all) world.together("all_reduce", 0, all, Engine::Collective, 0, 2 * kBytes, {}, rank);
  world.drain();
  EXPECT_NEAR(static_cast<double>(world.finished(0, 0)), 2 * (6 * kAlphaNs + 1.5 * kBytes * kBetaNs), kRounding);
}

}  // namespace
}  // namespace tandem::testing
