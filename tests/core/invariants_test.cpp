// What a bug would break ends the program, in every build: one case a room. A test of the checks themselves.
#include <gtest/gtest.h>

#include "core/formats/layout.hpp"
#include "core/model/meter.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/shared_update.hpp"
#include "core/policies/cotrain/separation.hpp"
#include "core/scheduler/happens_before.hpp"
#include "core/scheduler/residency.hpp"
#include "core/step/plan.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/overrides.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

TEST(InvariantsDeathTest, PoolsTakeBackWhatTheyGave) {
  Pool pool(1 << 20, 512);
  Fence waits;
  LaneProgress progress;
  progress.fill(kNoCommand);
  const std::int64_t at = *pool.allocate(4096, End::Low, progress, waits);
  EXPECT_DEATH(pool.free(at + 1, 1024, {}, progress), "bug: CHECK");
  EXPECT_DEATH(pool.free(at, 0, {}, progress), "bug: CHECK");
  EXPECT_DEATH(pool.hide(0, 2 << 20), "bug: CHECK");
  pool.free(at, 4096, {}, progress);
  EXPECT_EQ(pool.free_bytes(), 1 << 20);
}

TEST(InvariantsDeathTest, AValueHasOneBlockInATier) {
  Residency residency;
  residency.grow(2);
  residency.add(0, Tier::Device, 0, {0, 512}, {});
  EXPECT_DEATH(residency.add(0, Tier::Device, 512, {0, 512}, {}), "bug: CHECK");
  EXPECT_DEATH(residency.add(1, Tier::Device, 512, {0, 0}, {}), "bug: CHECK");
  EXPECT_DEATH(residency.remove(0), "values still refer to");
}

TEST(InvariantsDeathTest, CommandsAreDense) {
  const Graph graph;
  HappensBefore checker(graph);
  Command second;
  second.id = 1;
  second.kind = CommandKind::Release;
  EXPECT_DEATH(checker.append(std::span<const Command>(&second, 1)), "ids are dense");
}

TEST(InvariantsDeathTest, PartsOfASharedUpdateGoForwardOnly) {
  const Scenario scenario = testing::gpt_scenario("balanced", 1 << 30);
  const Graph graph = first_step(scenario, std::nullopt);
  Buckets buckets;
  buckets.follow(graph);
  const Bucket& bucket = buckets.step(0).front();
  EXPECT_DEATH(SharedUpdate(graph, bucket, 1.5, false), "bug: CHECK");
  const SharedUpdate update(graph, bucket, 0.5, false);
  EXPECT_EQ(update.piece(0).first, update.on_device.bytes);
  EXPECT_DEATH(update.piece(update.on_cpu.bytes), "all taken");
  Bucket no_update = bucket;
  no_update.optimizer = 0;
  EXPECT_DEATH(SharedUpdate(graph, no_update, 0.5, false), "old_states.size\\(\\) == new_states.size");
  EXPECT_DEATH(buckets.of(graph, 0), "bug: CHECK");
}

TEST(InvariantsDeathTest, PlansAreOfWhatThereIs) {
  EXPECT_DEATH(cpu_path_ns(std::vector<LayerTimes>(3), 4), "bug: CHECK");
  EXPECT_DEATH(first_blocks({1, 2, 3}, -1), "bug: CHECK");
}

TEST(InvariantsDeathTest, SizesAreWholeBlocks) {
  const StateSpec state{"adam_m", DType::U8, 1, state_block(8)};
  EXPECT_EQ(state.bytes(512), 520);
  EXPECT_DEATH(state.bytes(500), "bug: CHECK");
  EXPECT_DEATH(aligned_to(Layout(), 48), "bug: CHECK");
}

TEST(InvariantsDeathTest, TemporariesAreDroppedOnce) {
  WorkspaceMeter meter;
  const std::int64_t taken = meter.take(100);
  meter.drop(taken);
  EXPECT_DEATH(meter.drop(taken), "not there");
}

TEST(InvariantsDeathTest, AGraphBeginsWithItsPrologue) {
  const Scenario scenario = testing::gpt_scenario("balanced", 1 << 30);
  Graph graph;
  const auto source = find_workload("gpt")->make(scenario, {});
  EXPECT_DEATH(source->append_step(graph, 0), "prologue comes first");
  source->prologue(graph);
  EXPECT_DEATH(source->prologue(graph), "comes once");
}

TEST(InvariantsDeathTest, AnOverrideSetsAKey) {
  Node root;
  EXPECT_DEATH(apply(Override{}, root), "sets nothing");
}

}  // namespace
}  // namespace tandem
