// Costs of a machine whose CPU stands in for a device: lanes that share cores, lanes that must wake.
#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

HardwareProfile stand_in() {
  HardwareProfile machine = round_machine();
  machine.cores = 2;
  for (const Engine lane : {Engine::Compute, Engine::H2D, Engine::CpuOptimizer}) machine.lane_cores[lane] = 1;
  return machine;
}

TEST(StandIn, AsManyLanesAsCoresDoNotSlowEachOther) {
  SimWorld world(stand_in());
  const CommandId op = world.run(Engine::Compute, 30 * kMs);
  const CommandId update = world.run(Engine::CpuOptimizer, 20 * kMs);
  world.drain();
  EXPECT_EQ(world.finished(op), 30 * kMs);
  EXPECT_EQ(world.finished(update), 20 * kMs);
}

TEST(StandIn, ThreeLanesShareTwoCoresEqually) {
  SimWorld world(stand_in());
  // Each at 2/3 of its speed: the copy (10 ms alone) ends at 15 ms, when the others have done 10 ms of work. Then two
  // lanes have a core each: the update's other 10 ms end at 25 ms, the op's other 20 ms at 35 ms.
  const CommandId op = world.run(Engine::Compute, 30 * kMs);
  const CommandId update = world.run(Engine::CpuOptimizer, 20 * kMs);
  const CommandId fetch = world.copy(Engine::H2D, kGB / 10);
  world.drain();
  EXPECT_EQ(world.finished(fetch), 15 * kMs);
  EXPECT_EQ(world.finished(update), 25 * kMs);
  EXPECT_EQ(world.finished(op), 35 * kMs);
}

TEST(StandIn, LanesWithoutCoresAreNotSlowed) {
  SimWorld world(stand_in());
  world.run(Engine::Compute, 30 * kMs);
  world.run(Engine::CpuOptimizer, 30 * kMs);
  world.copy(Engine::H2D, kGB);
  const CommandId back = world.copy(Engine::D2H, kGB / 10);  // takes no core, as a copy engine
  world.drain();
  EXPECT_EQ(world.finished(back), 10 * kMs);
}

TEST(StandIn, OnlyALaneThatSleptMustWake) {
  HardwareProfile machine = round_machine();
  machine.wake_ns = 12'000;
  SimWorld world(machine);
  const CommandId first = world.run(Engine::Compute, kMs);             // the lane sleeps at first
  const CommandId second = world.run(Engine::Compute, kMs);            // goes on at once
  const CommandId up = world.copy(Engine::H2D, kGB / 1000, {second});  // 0.1 ms, on a lane that slept
  world.drain();
  EXPECT_EQ(world.started(first), 12'000);
  EXPECT_EQ(world.started(second), world.finished(first));
  EXPECT_EQ(world.started(up), world.finished(second) + 12'000);
}

TEST(StandIn, MeasuredBodiesFollowTheirOwnFactors) {
  HardwareProfile machine = round_machine();
  machine.op_ns = 50;
  machine.bodies["measured"] = {7'000, {{KernelKind::Gemm, 1.5}}};
  Graph graph;
  Kernel kernel;
  kernel.kind = KernelKind::Gemm;
  kernel.flops = 1'000'000'000;  // 1 ms at 1 TFLOPS
  const WorkId measured = graph.add_work({"measured", DType::F32, {}, {kernel}});
  const WorkId other = graph.add_work({"other", DType::F32, {}, {kernel}});
  const CostModel model(machine);
  EXPECT_EQ(model.run_ns(graph, measured, Engine::Compute), 1'500'000 + 7'000);
  EXPECT_EQ(model.run_ns(graph, other, Engine::Compute), 1'000'000 + 50);
}

}  // namespace
}  // namespace tandem::testing
