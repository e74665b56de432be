// Trainings on clusters: whole simulated runs, of all ranks and of one for all that are alike.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/machine/topology.hpp"
#include "core/scenario/ranks.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

// The first run of a process decides how large its platform is.
class Clusters : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/8, /*devices_per_host=*/4, 1, 256); }
};

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Hosts of two devices that share one card, two hosts below a leaf switch with half as much up as down.
Topology small_cluster() {
  Topology t;
  t.devices_per_host = t.devices_per_switch = 2;
  t.nvlink = {50e9, 1'000};
  t.nics = 1;
  t.nic = {5e9, 3'000};
  t.levels = {{.down = 2, .up = {5e9, 1'000}}, {.down = 4, .up = {}}};
  return t;
}

Scenario gpt_on(const Topology& topology) {
  Scenario s = gpt_scenario("resident", kGiB);
  s.workload.precision = DType::BF16;
  s.workload.micro_batches = 4;
  s.machine.dispatch_ns = 5000;
  s.machine.devices_per_host = static_cast<std::int32_t>(topology.devices_per_host);
  s.machine.topology = std::make_shared<const Topology>(topology);
  return s;
}

double step_s(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median;
}

struct Shape {
  std::int64_t tensor, data, stages;
};

TEST_F(Clusters, FoldedRanksTakeTheSameTime) {
  for (const CollectiveAlgorithm algorithm :
       {CollectiveAlgorithm::Auto, CollectiveAlgorithm::HalvingDoubling, CollectiveAlgorithm::Hierarchical})
    for (const Shape& shape : {Shape{2, 2, 1}, Shape{2, 4, 1}, Shape{1, 8, 1}, Shape{2, 2, 2}, Shape{2, 1, 2},
                               Shape{1, 4, 2}, Shape{4, 2, 1}}) {
      SCOPED_TRACE(std::to_string(shape.tensor) + " " + std::to_string(shape.data) + " " +
                   std::to_string(shape.stages));
      Topology topology = small_cluster();
      topology.algorithm = algorithm;
      Scenario s = gpt_on(topology);
      s.workload.tensor = shape.tensor;
      s.workload.devices = shape.data;
      s.parallel.pipeline = shape.stages;
      const double unfolded = step_s(s);
      s.parallel.fold = true;
      EXPECT_EQ(rank_count(s), shape.stages);
      EXPECT_NEAR(step_s(s), unfolded, 1e-6 * unfolded);
    }
}

// Slow cards, by which nearly all of a step goes: two ranks that divide layers add up their gradients with others at
// the same time. Where both go by one card, it takes twice as long as where each has its own, folded or not.
TEST_F(Clusters, RanksThatShareACardTakeTurns) {
  Topology topology = small_cluster();
  topology.algorithm = CollectiveAlgorithm::Ring;
  topology.levels = {{.down = 8, .up = {}}};
  for (const bool fold : {false, true}) {
    const auto step = [&](std::int64_t cards) {
      topology.nics = cards;
      topology.nic = {5e6, 0};
      Scenario s = gpt_on(topology);
      s.workload.tensor = 2;
      s.workload.devices = 4;
      s.parallel.fold = fold;
      return step_s(s);
    };
    EXPECT_NEAR(step(1) / step(2), 2, 0.05) << fold;
  }
}

// Three ranks divide layers on hosts of two: some groups are on one host alone, others on two.
TEST_F(Clusters, RanksThatAreNotAlikeAreNotFolded) {
  Scenario s = gpt_on(small_cluster());
  s.workload.keys["heads"] = 3;
  s.workload.keys["hidden"] = 48;
  s.workload.keys["vocabulary"] = 255;
  s.workload.tensor = 3;
  s.workload.devices = 2;
  EXPECT_GT(step_s(s), 0);
  s.parallel.fold = true;
  try {
    step_s(s);
    FAIL() << "was folded";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("parallel.fold"), std::string::npos) << error.what();
  }
}

// Six layers with gradients of 8 MB, on four hosts of one device, two below a leaf switch. An all-reduce by a ring goes
// through each uplink once, each way: up at a quarter of a card's rate, it takes four times as long.
TEST_F(Clusters, OversubscriptionHasItsPrice) {
  constexpr std::int64_t kLayerBytes = 8'000'000;
  Topology topology;
  topology.nics = 1;
  topology.nic = {10e9, 0};
  topology.algorithm = CollectiveAlgorithm::Ring;
  const auto step = [&](double up) {
    topology.levels = {{.down = 2, .up = {up, 0}}, {.down = 2, .up = {}}};
    Scenario s = layers_scenario("resident", 16 * kGiB, 6, kLayerBytes, 1'000, 1'000, 1);
    s.workload.devices = 4;
    s.machine.devices_per_host = 1;
    s.machine.topology = std::make_shared<const Topology>(topology);
    return step_s(s);
  };
  const double all_s = 6 * 1.5 * kLayerBytes / 10e9;  // of all layers' gradients: 2 (p - 1) / p
  EXPECT_NEAR(step(10e9), all_s, 0.01 * all_s);
  EXPECT_NEAR(step(2.5e9) - step(10e9), 3 * all_s, 1e-6);
}

TEST_F(Clusters, KeepTheOrderOfTheirRanks) {
  Scenario s = gpt_on(small_cluster());
  s.workload.devices = 4;
  s.workload.tensor = 2;
  Simulation simulation(s);
  for (const CheckedRank& rank : run_checked(simulation)) EXPECT_EQ(rank.violation, "");
}

}  // namespace
}  // namespace tandem::testing
