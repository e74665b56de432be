// How many blocks keep what they save, and what that takes on the device.
#include "core/policies/common/activations.hpp"

#include <gtest/gtest.h>

#include "core/policies/common/step_memory.hpp"
#include "core/transforms/recompute/recompute.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kKiB = 1024;

// Activations outweigh all else: two-byte parameters of 0.5 MB, 0.7 MB saved a block.
Scenario wide(std::int64_t device_kib, const std::string& policy = "balanced") {
  Scenario s = testing::gpt_scenario(policy, device_kib * kKiB, /*layers=*/8);
  s.workload.precision = DType::BF16;
  s.workload.batch = 8;
  return s;
}

Graph one_step(const Scenario& scenario, BlockActivations choice) {
  Graph graph;
  const auto source = find_workload("gpt")->make(scenario, {recompute_blocks(choice)});
  source->prologue(graph);
  source->append_step(graph, 0);
  return graph;
}

// A policy whose updates take no time.
const MemoryUse kUse{3, [](const Graph&, const CostModel&, std::int32_t) { return std::int64_t{0}; }};

std::int64_t blocks_without(const Scenario& scenario) {
  const auto choice = Activations(scenario, &kUse).choice();
  return choice->offload + choice->recompute;
}

std::int64_t activations_moved(const testing::NullRun& run) {
  std::int64_t bytes = 0;
  for (const auto& entry : run.log.entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Copy &&
          run.scheduler->graph().tensor_of(command.part.value).role == Role::Activation)
        bytes += command.part.bytes;
  return bytes;
}

TEST(Activations, LessRoomKeepsFewerBlocks) {
  EXPECT_EQ(blocks_without(wide(1 << 20)), 0);
  std::int64_t before = 0;
  for (const std::int64_t kib : {8192, 7168, 6144, 5120, 4096, 3072, 2048}) {
    const std::int64_t blocks = blocks_without(wide(kib));
    EXPECT_GE(blocks, before) << kib;
    before = blocks;
  }
  EXPECT_EQ(before, 8);
}

// Nothing is evicted, and without the choice something would be.
TEST(Activations, WhatIsChosenFits) {
  for (const std::int64_t kib : {5632, 4864}) {
    Scenario scenario = wide(kib);
    const std::int64_t blocks = blocks_without(scenario);
    ASSERT_GT(blocks, 0) << kib;
    ASSERT_LT(blocks, 8) << kib;
    const testing::NullRun chosen = testing::run_null(scenario);
    EXPECT_EQ(chosen.violation, "");
    EXPECT_EQ(activations_moved(chosen), 0) << kib;
    scenario.policy.options["recompute_blocks"] = "0";
    EXPECT_GT(activations_moved(testing::run_null(scenario)), 0) << kib;
  }
}

TEST(Activations, TheBusIsTakenWhereItIsQuicker) {
  Scenario scenario = wide(5120);
  EXPECT_EQ(Activations(scenario, &kUse).choice()->offload, 0);
  scenario.machine.h2d.bytes_per_s = scenario.machine.d2h.bytes_per_s = 1e14;
  const auto choice = Activations(scenario, &kUse).choice();
  EXPECT_GT(choice->offload, 0);
  EXPECT_EQ(choice->recompute, 0);
  const testing::NullRun run = testing::run_null(scenario);
  EXPECT_EQ(run.violation, "");
  EXPECT_GT(activations_moved(run), 0);
}

TEST(Activations, TheScenarioOrTheUserDecidesFirst) {
  Scenario scenario = wide(5120);
  EXPECT_FALSE(Activations(scenario).choice());
  scenario.workload.recompute = "block";
  EXPECT_FALSE(Activations(scenario, &kUse).choice());
  scenario.policy.options["offload_blocks"] = "2";
  EXPECT_EQ(Activations(scenario, &kUse).choice()->offload, 2);
  EXPECT_EQ(Activations(scenario).choice()->recompute, 0);
}

TEST(Activations, PeakFallsWithEachBlockThatLeaves) {
  const Scenario scenario = wide(1 << 20);
  std::int64_t before = activation_peak(one_step(scenario, {}), {});
  std::vector<std::int32_t> layers;
  for (std::int32_t layer = 1; layer <= 6; ++layer) {  // layer 0 is the embedding
    layers.push_back(layer);
    const std::int64_t offloaded = activation_peak(one_step(scenario, {}), layers);
    const std::int64_t recomputed = activation_peak(one_step(scenario, {.offload = 0, .recompute = layer}), {});
    EXPECT_LT(offloaded, before);
    EXPECT_LE(offloaded, recomputed) << "recomputing keeps the block's input";
    before = offloaded;
  }
}

}  // namespace
}  // namespace tandem
