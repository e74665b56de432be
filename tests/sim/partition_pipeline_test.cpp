// Copies of a pipeline that divide their stages' states, gradients or parameters among them (what Megatron-DeepSpeed
// calls 3D parallelism with ZeRO): whole simulated runs against closed forms, and under every policy.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/ranks.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kGB = 1'000'000'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class PartitionInAPipeline : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/16); }
};

Analysis simulated(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record());
}

Scenario two_copies(int layers, std::int64_t layer_bytes, const char* partition) {
  Scenario s = layers_scenario("resident", 64 * kGiB, layers, layer_bytes, 10 * kMs, 20 * kMs, 100 * kMs);
  s.workload.devices = 2;
  s.workload.partition = partition;
  s.parallel.pipeline = 2;
  s.steps = 5;
  return s;
}

// Two stages of a layer of 1 GB. Forwards of 10 ms to 20, backwards of 20 to 40 and 60, the first stage's all-reduce of
// 2 x 1/2 x 1 GB to 160, its update to 260; the other stage's are over before. Divided: an all-gather of half of that
// to 50, passes to 110, a reduce-scatter to 160, half of the update to 210.
TEST_F(PartitionInAPipeline, EachStageDividesItsOwn) {
  EXPECT_NEAR(simulated(two_copies(2, kGB, "none")).step_s.median, 260e-3, 1e-6);
  EXPECT_NEAR(simulated(two_copies(2, kGB, "optimizer")).step_s.median, 210e-3, 1e-6);
}

std::int64_t bytes_of(const Graph& graph, Role role, const std::string& name) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role == role && tensor.name.ends_with(name)) bytes += tensor.bytes;
  }
  return bytes;
}

// In bf16, of a stage of P parameters: 2 P of parameters and 12 P of states, of masters and
// moments, the N-th part on each rank; whole parameters where they are brought together.
TEST_F(PartitionInAPipeline, WhatARankHas) {
  constexpr std::int64_t kParameters = 2 * kMiB / 2;  // of a stage
  for (const char* partition : {"none", "optimizer", "states", "parameters"}) {
    Scenario s = two_copies(4, kMiB, partition);
    s.workload.devices = 4;
    const bool divided = partition != std::string("none");
    Simulation simulation(s);
    simulation.run();
    ASSERT_EQ(simulation.rank_count(), 8);
    for (Rank rank = 0; rank < 8; ++rank) {
      SCOPED_TRACE(std::string(partition) + " " + std::to_string(rank));
      const Graph& graph = simulation.graph(rank);
      EXPECT_EQ(bytes_of(graph, Role::Parameter, ".parameter"), 2 * kParameters / (divided ? 4 : 1));
      EXPECT_EQ(bytes_of(graph, Role::OptimizerState, ""), 12 * kParameters / (divided ? 4 : 1));
      EXPECT_EQ(bytes_of(graph, Role::Activation, ".whole_parameter"), divided ? 2 * kParameters : 0);
    }
  }
}

// What the rank sends in its third step, around rings of two: half of what is gathered or scattered, all of what is
// reduced whole.
double sent_bytes(const Graph& graph) {
  double bytes = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != 2 || op.engine != Engine::Collective) continue;
    const Work& work = graph.work_of(op);
    bytes += static_cast<double>(work.sizes.at(0) * size_of(work.type)) * (work.body == "all_reduce" ? 1 : 0.5);
  }
  return bytes;
}

// Two layers of n bytes a stage, M micro-batches. Parameters are gathered for each forward and each backward, but for
// the backward that follows its forward at once: of the last layer.
TEST_F(PartitionInAPipeline, WhatARankSends) {
  constexpr double kLayer = kMiB, kMicroBatches = 3;
  struct {
    const char* partition;
    double first_stage, last_stage;
  } const ways[] = {{"none", 2, 2},
                    {"optimizer", 2, 2},
                    {"states", kMicroBatches + 1, kMicroBatches + 1},
                    {"parameters", 3 * kMicroBatches, 2.5 * kMicroBatches}};
  for (const auto& way : ways) {
    SCOPED_TRACE(way.partition);
    Scenario s = two_copies(4, kMiB, way.partition);
    s.workload.micro_batches = 3;
    Simulation simulation(s);
    simulation.run();
    for (Rank rank = 0; rank < 4; ++rank)
      EXPECT_DOUBLE_EQ(sent_bytes(simulation.graph(rank)), kLayer * (rank < 2 ? way.first_stage : way.last_stage))
          << rank;
  }
}

TEST_F(PartitionInAPipeline, FoldsToTheSameTime) {
  for (const char* partition : {"optimizer", "states", "parameters"})
    for (const std::int64_t tensor : {1, 2}) {
      Scenario s = gpt_scenario("resident", kGiB);
      s.workload.devices = 4;
      s.workload.tensor = tensor;
      s.workload.micro_batches = 4;
      s.workload.partition = partition;
      s.optimizer.clip_norm = 1;
      s.parallel.pipeline = 2;
      s.machine.collective_latency_ns = 20'000;
      const double unfolded = simulated(s).step_s.median;
      s.parallel.fold = true;
      EXPECT_NEAR(simulated(s).step_s.median, unfolded, 1e-6 * unfolded) << partition << ' ' << tensor;
    }
}

TEST_F(PartitionInAPipeline, EveryPolicyAndScheduleKeepsBytesInOrder) {
  int runs = 0;
  for (const PolicyEntry* policy : policies())
    for (const char* partition : {"optimizer", "states", "parameters"})
      for (const char* schedule : {"1f1b", "gpipe", "hippie", "interleaved", "zero_bubble"}) {
        if (policy->name != "resident" && schedule == std::string("hippie")) continue;
        Scenario s = gpt_scenario(std::string(policy->name), 8 * kMiB);
        const bool interleaved = schedule == std::string("interleaved");
        s.workload.devices = 2;
        s.workload.micro_batches = 2;
        s.workload.precision = interleaved ? DType::F32 : DType::BF16;
        s.workload.partition = partition;
        s.workload.recompute = interleaved ? "none" : "block";
        s.optimizer.clip_norm = interleaved ? 0 : 1;
        s.parallel = {.pipeline = 2, .chunks = interleaved ? 2 : 1, .schedule = schedule};
        s.truth.noise = 0.3;
        if (schedule == std::string("gpipe")) s.checkpoint = {"nowhere: simulated", 1, 2};
        SCOPED_TRACE(std::string(policy->name) + ' ' + partition + ' ' + schedule);
        std::unique_ptr<Simulation> simulation;
        try {
          simulation = std::make_unique<Simulation>(s);
        } catch (const ConfigError&) {  // a policy that cannot
          continue;
        }
        for (const CheckedRank& rank : run_checked(*simulation)) {
          EXPECT_EQ(rank.violation, "");
          EXPECT_GT(rank.checked, 50);
        }
        ++runs;
      }
  EXPECT_GE(runs, 3 * 4 * 10);
}

}  // namespace
}  // namespace tandem::testing
