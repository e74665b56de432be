// Simulated times against arithmetic that a person can follow, to the nanosecond.
#include <gtest/gtest.h>

#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

TEST(ClosedForms, OneCopyTakesItsBytesOverItsRate) {
  SimWorld world(round_machine());
  const CommandId up = world.copy(Engine::H2D, kGB);  // 1 GB / 10 GB/s
  const EventBatch batch = world.wait();
  EXPECT_EQ(batch.observed.ns, 100 * kMs);
  EXPECT_EQ(world.started(up), 0);
  EXPECT_EQ(world.finished(up), 100 * kMs);
  EXPECT_FALSE(world.executor().in_flight());
}

TEST(ClosedForms, LatencyComesFirst) {
  HardwareProfile machine = round_machine();
  machine.h2d.latency_ns = 7'000;
  SimWorld world(machine);
  const CommandId first = world.copy(Engine::H2D, kGB);
  const CommandId second = world.copy(Engine::H2D, kGB);
  world.drain();
  EXPECT_EQ(world.finished(first), 100 * kMs + 7'000);
  EXPECT_EQ(world.started(second), 100 * kMs + 7'000);
  EXPECT_EQ(world.finished(second), 200 * kMs + 14'000);
}

TEST(ClosedForms, BothDirectionsShareThePcieCap) {
  HardwareProfile machine = round_machine();
  machine.pcie_bytes_per_s = 16e9;
  SimWorld world(machine);
  // Both at 8 GB/s: the first GB each way takes 125 ms. Then the second half of the 2 GB goes up alone at 10 GB/s.
  const CommandId up = world.copy(Engine::H2D, 2 * kGB);
  const CommandId down = world.copy(Engine::D2H, kGB);
  world.drain();
  EXPECT_EQ(world.finished(down), 125 * kMs);
  EXPECT_EQ(world.finished(up), 225 * kMs);
}

TEST(ClosedForms, LatencyLoadsNothing) {
  HardwareProfile machine = round_machine();
  machine.pcie_bytes_per_s = 10e9;
  machine.d2h.latency_ns = 50 * kMs;
  SimWorld world(machine);
  // Up alone for 50 ms (0.5 GB); then 5 GB/s each: up's other 0.5 GB takes 100 ms; down then has 0.5 GB left, alone.
  const CommandId up = world.copy(Engine::H2D, kGB);
  const CommandId down = world.copy(Engine::D2H, kGB);
  world.drain();
  EXPECT_EQ(world.finished(up), 150 * kMs);
  EXPECT_EQ(world.finished(down), 200 * kMs);
}

TEST(ClosedForms, LanesOverlapAndWait) {
  SimWorld world(round_machine());
  const CommandId fetch = world.copy(Engine::H2D, kGB / 10);                     // 0 to 10 ms
  const CommandId before = world.run(Engine::Compute, 4 * kMs);                  // 0 to 4
  const CommandId after = world.run(Engine::Compute, 5 * kMs, {fetch});          // 10 to 15
  const CommandId update = world.run(Engine::CpuOptimizer, 20 * kMs, {before});  // 4 to 24
  const CommandId back = world.copy(Engine::D2H, kGB / 100, {after, update});    // 24 to 25
  world.drain();
  EXPECT_EQ(world.finished(before), 4 * kMs);
  EXPECT_EQ(world.started(after), 10 * kMs);
  EXPECT_EQ(world.finished(after), 15 * kMs);
  EXPECT_EQ(world.finished(update), 24 * kMs);
  EXPECT_EQ(world.finished(back), 25 * kMs);
}

TEST(ClosedForms, CopyAndOptimizerShareDram) {
  HardwareProfile machine = round_machine();
  memory_rate(machine, Tier::HostPinned) = 20e9;
  // The optimizer alone moves 2 GB in 100 ms: all of DRAM. Beside a 10 GB/s copy, each gets 10 GB/s: the copy is not
  // slowed (1 GB in 100 ms); the optimizer has moved 1 GB by then, and needs 50 ms more alone.
  SimWorld shared(machine, Fidelity::Shared);
  const CommandId update = shared.run(Engine::CpuOptimizer, 100 * kMs, {}, 0, 2 * kGB);
  const CommandId up = shared.copy(Engine::H2D, kGB);
  shared.drain();
  EXPECT_EQ(shared.finished(up), 100 * kMs);
  EXPECT_EQ(shared.finished(update), 150 * kMs);
}

TEST(ClosedForms, WithoutMemorySharingTheyDoNotMeet) {
  HardwareProfile machine = round_machine();
  memory_rate(machine, Tier::HostPinned) = 20e9;
  SimWorld alone(machine, Fidelity::Alone);
  const CommandId update = alone.run(Engine::CpuOptimizer, 100 * kMs, {}, 0, 2 * kGB);
  const CommandId up = alone.copy(Engine::H2D, kGB);
  alone.drain();
  EXPECT_EQ(alone.finished(up), 100 * kMs);
  EXPECT_EQ(alone.finished(update), 100 * kMs);
}

TEST(ClosedForms, KernelsShareDeviceMemoryWithCopies) {
  HardwareProfile machine = round_machine();
  memory_rate(machine, Tier::Device) = 100e9;
  SimWorld world(machine, Fidelity::Shared);
  // A kernel that streams all of 100 GB/s for 90 ms (9 GB), beside 10 GB/s of copies for 100 ms: 90 GB/s are left to
  // it, so that it takes 9 GB / 90 GB/s = 100 ms. One that needs 50 GB/s is not slowed.
  const CommandId greedy = world.run(Engine::Compute, 90 * kMs, {}, 0, 9 * kGB);
  const CommandId up = world.copy(Engine::H2D, kGB);
  const CommandId modest = world.run(Engine::Compute, 10 * kMs, {}, 0, kGB / 2);
  const CommandId second_up = world.copy(Engine::H2D, kGB);
  world.drain();
  EXPECT_EQ(world.finished(greedy), 100 * kMs);
  EXPECT_EQ(world.finished(up), 100 * kMs);
  EXPECT_EQ(world.finished(modest), 110 * kMs);
  EXPECT_EQ(world.finished(second_up), 200 * kMs);
}

TEST(ClosedForms, ReadsAndWritesShareTheDisk) {
  SimWorld world(round_machine());
  // 1 GB/s shared: 0.1 GB each way takes 200 ms together.
  const CommandId read = world.copy(Engine::DiskRead, kGB / 10);
  const CommandId write = world.copy(Engine::DiskWrite, kGB / 10);
  world.drain();
  EXPECT_EQ(world.finished(read), 200 * kMs);
  EXPECT_EQ(world.finished(write), 200 * kMs);
}

TEST(ClosedForms, AReadThatIsSlowerThanAWriteTakesMoreOfTheDisk) {
  HardwareProfile machine = round_machine();
  machine.disk_write.bytes_per_s = 2e9;
  SimWorld world(machine);
  // Alone 100 and 50 ms. In turns: half of the disk's time each until the write is done, at 100 ms, then the other half
  // of the read alone.
  const CommandId read = world.copy(Engine::DiskRead, kGB / 10);
  const CommandId write = world.copy(Engine::DiskWrite, kGB / 10);
  world.drain();
  EXPECT_EQ(world.finished(write), 100 * kMs);
  EXPECT_EQ(world.finished(read), 150 * kMs);
}

TEST(ClosedForms, ADiskMayGiveMoreToBothTogether) {
  HardwareProfile machine = round_machine();
  memory_rate(machine, Tier::Disk) = 2e9;
  SimWorld world(machine);
  const CommandId read = world.copy(Engine::DiskRead, kGB / 10);
  const CommandId write = world.copy(Engine::DiskWrite, kGB / 10);
  world.drain();
  EXPECT_EQ(world.finished(read), 100 * kMs);
  EXPECT_EQ(world.finished(write), 100 * kMs);
}

TEST(ClosedForms, BusyLanesSlowEachOther) {
  HardwareProfile machine = round_machine();
  machine.interference[{Engine::Compute, Engine::CpuOptimizer}] = 1.5;
  machine.interference[{Engine::Compute, Engine::H2D}] = 1.25;
  SimWorld world(machine);
  // Compute beside the optimizer (30 ms, itself not slowed) goes at 1/1.5: 20 of its 100 ms are done by then. Alone to
  // 40 ms (10 more), then beside a copy of 50 ms at 1/1.25 (40 more), then alone for the last 30: 40 + 50 + 30.
  const CommandId update = world.run(Engine::CpuOptimizer, 30 * kMs);
  const CommandId compute = world.run(Engine::Compute, 100 * kMs);
  const CommandId delay = world.run(Engine::Loader, 40 * kMs);
  const CommandId up = world.copy(Engine::H2D, kGB / 2, {delay});
  world.drain();
  EXPECT_EQ(world.finished(update), 30 * kMs);
  EXPECT_EQ(world.finished(up), 90 * kMs);
  EXPECT_EQ(world.finished(compute), 120 * kMs);
}

TEST(ClosedForms, LanesShareHostMemoryByTheirWeights) {
  HardwareProfile machine = round_machine();
  memory_rate(machine, Tier::HostPinned) = 30e9;
  machine.memory_weights = {{Engine::D2H, {4}}};
  SimWorld world(machine, Fidelity::Shared);
  // The update wants 30 GB/s, copies 10 each. By weight 30 : 10 : 40 the copy from the device gets all of its 10, the
  // others share 20 as 3 to 1. The update ends at 200 ms. Then nothing is short: the other copy goes on at 10 GB/s.
  const CommandId update = world.run(Engine::CpuOptimizer, 100 * kMs, {}, 0, 3 * kGB);
  const CommandId up = world.copy(Engine::H2D, 2 * kGB);
  const CommandId down = world.copy(Engine::D2H, 3 * kGB);
  world.drain();
  EXPECT_EQ(world.finished(down), 300 * kMs);
  EXPECT_EQ(world.finished(update), 200 * kMs);
  EXPECT_EQ(world.finished(up), 300 * kMs);
}

TEST(ClosedForms, AllReduceOfFourRanks) {
  HardwareProfile machine = round_machine();
  machine.collective_latency_ns = 1'000;
  SimWorld world(machine, Fidelity::Alone, 4);
  // Starts when the last rank is there (30 ms); 2 * 3/4 * 1 GB / 10 GB/s = 150 ms.
  std::vector<CommandId> reduce;
  for (Rank rank = 0; rank < 4; ++rank) {
    const CommandId compute = world.run(Engine::Compute, 10 * kMs * rank, {}, rank);
    reduce.push_back(world.collective(0, kGB, {compute}, rank));
  }
  const CommandId next = world.run(Engine::Compute, kMs, {reduce[2]}, 2);
  world.drain();
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(world.started(reduce[static_cast<std::size_t>(rank)], rank), 30 * kMs);
    EXPECT_EQ(world.finished(reduce[static_cast<std::size_t>(rank)], rank), 180 * kMs + 1'000);
  }
  EXPECT_EQ(world.finished(next, 2), 181 * kMs + 1'000);
}

TEST(ClosedForms, RanksOfAHostShareItsDram) {
  HardwareProfile machine = round_machine();
  memory_rate(machine, Tier::HostPinned) = 20e9;
  for (const std::int32_t devices_per_host : {0, 1}) {
    machine.devices_per_host = devices_per_host;
    SimWorld world(machine, Fidelity::Shared, 4);
    std::vector<CommandId> up;
    for (Rank rank = 0; rank < 4; ++rank) up.push_back(world.copy(Engine::H2D, kGB, {}, rank));
    // Four copies of 10 GB/s: 5 GB/s each on one host of 20 GB/s, full speed on hosts of their own.
    world.drain();
    for (Rank rank = 0; rank < 4; ++rank)
      EXPECT_EQ(world.finished(up[static_cast<std::size_t>(rank)], rank), (devices_per_host == 0 ? 200 : 100) * kMs);
  }
}

TEST(ClosedForms, HandOverAndEventsCostTheirTime) {
  HardwareProfile machine = round_machine();
  machine.dispatch_ns = 3'000;
  machine.event_ns = 10'000;
  SimWorld world(machine);
  // The submitting thread hands over one command every 3 us. Device-side waits do not pay for events.
  const CommandId first = world.run(Engine::Compute, 1'000);                 // 3 to 4 us
  const CommandId second = world.run(Engine::Compute, 1'000);                // 6 to 7
  const CommandId third = world.run(Engine::CpuCompute, 100'000, {second});  // 9 to 109
  const EventBatch seen = world.wait();
  ASSERT_EQ(seen.events.size(), 1u);
  EXPECT_EQ(seen.events[0].command, first);
  EXPECT_EQ(seen.observed.ns, 14'000);
  world.drain();
  EXPECT_EQ(world.started(second), 6'000);
  EXPECT_EQ(world.finished(second), 7'000);
  EXPECT_EQ(world.started(third), 9'000);
  EXPECT_EQ(world.finished(third), 109'000);
}

// Launching an op's kernels takes 10 ms, or 20 beside a copy to the device, beside which an op takes 5 ms longer; one
// whose kernels are launched as it runs takes 4 ms longer.
TEST(ClosedForms, LaunchesAndStartsTakeLongerBesideACopy) {
  HardwareProfile machine = round_machine();
  machine.bodies[SimWorld::kBody].dispatch_ns = 10 * kMs;
  machine.bodies[SimWorld::kBody].late_ns = 4 * kMs;
  machine.launches_beside[Engine::H2D] = {0.5, 0.2, 2};
  SimWorld world(machine);
  const CommandId first = world.run(Engine::Compute, 40 * kMs);
  const CommandId second = world.run(Engine::Compute, 40 * kMs);
  // Handed over when both are launched, at 20 ms, by when the first has 4 ms of lateness and 16 of its 40 behind it.
  const CommandId up = world.copy(Engine::H2D, kGB);
  world.drain();
  EXPECT_EQ(world.started(up), 20 * kMs);
  EXPECT_EQ(world.finished(first), (20 + 27) * kMs) << "24 ms at 40/45 of the speed";
  EXPECT_EQ(world.finished(second), (47 + 45) * kMs) << "launched while the first ran";
  EXPECT_EQ(world.finished(up), 120 * kMs);
  const CommandId again = world.copy(Engine::H2D, kGB);
  const CommandId delay = world.run(Engine::CpuCompute, kMs);
  while (world.wait().events.front().command != delay) {
  }
  const CommandId third = world.run(Engine::Compute, 40 * kMs);
  const CommandId after = world.run(Engine::CpuCompute, kMs);
  world.drain();
  EXPECT_EQ(world.started(third), 121 * kMs);
  EXPECT_EQ(world.started(after), (121 + 20) * kMs);
  EXPECT_EQ(world.finished(third), (121 + 8 + 45) * kMs) << "twice as late";
  EXPECT_EQ(world.finished(again), 220 * kMs);
}

TEST(ClosedForms, TruthDiffersFromTheProfile) {
  HardwareProfile machine = round_machine();
  machine.pcie_bytes_per_s = 16e9;
  Truth factors;
  factors.copy_time = 1.3;
  factors.compute_time = 2;
  factors.optimizer_time = 0.5;
  SimWorld world(machine, Fidelity::Alone, 1, factors);
  // The factor holds beside other copies too: 125 ms each way at 8 GB/s, times 1.3.
  const CommandId up = world.copy(Engine::H2D, kGB);
  const CommandId down = world.copy(Engine::D2H, kGB);
  const CommandId alone = world.copy(Engine::H2D, kGB);
  const CommandId compute = world.run(Engine::Compute, kMs);
  const CommandId update = world.run(Engine::CpuOptimizer, kMs);
  world.drain();
  EXPECT_EQ(world.finished(up), 162'500'000);
  EXPECT_EQ(world.finished(down), 162'500'000);
  EXPECT_EQ(world.finished(alone) - world.started(alone), 130 * kMs);
  EXPECT_EQ(world.finished(compute), 2 * kMs);
  EXPECT_EQ(world.finished(update), kMs / 2);
}

}  // namespace
}  // namespace tandem::testing
