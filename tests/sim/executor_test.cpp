// What the simulated executor promises at the seam: order, batches, deadlines, determinism, extremes, bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/common/random_commands.hpp"
#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

using test::order_violation;
using test::random_stream;
using test::RandomStream;
using test::RandomStreamOptions;

struct RunOptions {
  Fidelity fidelity = Fidelity::Shared;
  double noise = 0;
  std::uint64_t seed = 0;
  std::size_t chunk = 100;  // commands of each rank a submit
};

HardwareProfile busy_machine() {
  HardwareProfile machine = round_machine();
  machine.pcie_bytes_per_s = 13e9;
  machine.h2d.latency_ns = machine.d2h.latency_ns = 137;
  machine.dispatch_ns = 3;
  machine.event_ns = 11;
  machine.interference[{Engine::Compute, Engine::CpuOptimizer}] = 1.37;
  memory_rate(machine, Tier::HostPinned) = 17e9;
  memory_rate(machine, Tier::Device) = 90e9;
  return machine;
}

struct Outcomes {
  std::vector<Event> events;
  std::vector<TimeNs> observed;
};

// Feeds the stream in chunks, waiting for one batch in between, as a scheduler would.
Outcomes run_stream(const RandomStream& stream, const HardwareProfile& machine, const RunOptions& options) {
  Truth factors;
  factors.noise = options.noise;
  const auto graphs = stream.graph_pointers();
  SimgridExecutor executor(graphs, machine, factors, options.seed, options.fidelity);
  Outcomes outcomes;
  const auto take = [&] {
    const EventBatch batch = executor.wait(kNever);
    EXPECT_FALSE(batch.events.empty());
    EXPECT_TRUE(std::is_sorted(batch.events.begin(), batch.events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.rank, a.command) < std::tie(b.rank, b.command);
    }));
    for (const Event& event : batch.events) EXPECT_LE(event.finished, batch.observed);
    if (!outcomes.observed.empty()) {
      EXPECT_LE(outcomes.observed.back(), batch.observed);
    }
    outcomes.observed.push_back(batch.observed);
    outcomes.events.insert(outcomes.events.end(), batch.events.begin(), batch.events.end());
  };
  const std::size_t count = stream.commands.front().size();
  for (std::size_t first = 0; first < count; first += options.chunk) {
    for (const auto& commands : stream.commands)
      executor.submit(std::span(commands).subspan(first, std::min(options.chunk, count - first)));
    if (executor.in_flight()) take();
  }
  while (executor.in_flight()) take();
  return outcomes;
}

TEST(SimgridExecutor, KeepsFifoAndWaitForOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStreamOptions options;
    options.seed = seed;
    options.ranks = 1 + static_cast<Rank>(seed % 3);
    options.copy_lanes = {Engine::H2D, Engine::D2H, Engine::H2DSmall, Engine::DiskRead, Engine::DiskWrite};
    const RandomStream stream = random_stream(options);
    for (const Fidelity fidelity : {Fidelity::Alone, Fidelity::Shared}) {
      const Outcomes outcomes = run_stream(stream, busy_machine(), {fidelity, 0.1, seed});
      EXPECT_EQ(order_violation(stream, outcomes.events), "") << "seed " << seed;
    }
  }
}

TEST(SimgridExecutor, OrderCheckFindsAViolation) {
  const RandomStream stream = random_stream({});
  Outcomes outcomes = run_stream(stream, busy_machine(), {});
  ASSERT_EQ(order_violation(stream, outcomes.events), "");
  std::vector<Event> events = outcomes.events;
  const auto late = std::max_element(events.begin(), events.end(),
                                     [](const Event& a, const Event& b) { return a.started < b.started; });
  late->started = {0};
  EXPECT_NE(order_violation(stream, events), "");
  events = outcomes.events;
  events.pop_back();
  EXPECT_NE(order_violation(stream, events), "");
}

TEST(SimgridExecutor, SameSeedSameLog) {
  RandomStreamOptions options;
  options.ranks = 3;
  options.commands = 3000;
  const RandomStream stream = random_stream(options);
  const Outcomes first = run_stream(stream, busy_machine(), {Fidelity::Shared, 0.2, 7});
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Outcomes again = run_stream(stream, busy_machine(), {Fidelity::Shared, 0.2, 7});
    EXPECT_EQ(again.events, first.events);
    EXPECT_EQ(again.observed, first.observed);
  }
  const Outcomes other = run_stream(stream, busy_machine(), {Fidelity::Shared, 0.2, 8});
  EXPECT_NE(other.events, first.events);
}

TEST(SimgridExecutor, NoiseHasItsMeanAndDeviation) {
  Truth factors;
  factors.noise = 0.25;
  SimWorld world(round_machine(), Fidelity::Alone, 1, factors, 3);
  constexpr int kCommands = 20'000;
  for (int i = 0; i < kCommands; ++i) world.run(Engine::Compute, kMs);
  double sum = 0, squares = 0;
  for (const Event& event : world.drain()) {
    const double ratio = static_cast<double>(event.finished.ns - event.started.ns) / static_cast<double>(kMs);
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kCommands;
  // The standard error of the mean is 0.25 / sqrt(20000) = 0.0018.
  EXPECT_NEAR(mean, 1, 0.01);
  EXPECT_NEAR(std::sqrt(squares / kCommands - mean * mean), 0.25, 0.01);
}

TEST(SimgridExecutor, OneInstantIsOneBatchInOrder) {
  SimWorld world(round_machine(), Fidelity::Alone, 2);
  for (const Rank rank : {1, 0}) {
    world.run(Engine::CpuOptimizer, kMs, {}, rank);
    world.run(Engine::Compute, kMs, {}, rank);
    world.copy(Engine::H2D, kGB / 100, {}, rank);  // 1 ms
    world.run(Engine::CpuCompute, 0, {2}, rank);   // at the end of the copy, in no time
  }
  const EventBatch batch = world.wait();
  ASSERT_EQ(batch.events.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(batch.events[i].rank, static_cast<Rank>(i / 4));
    EXPECT_EQ(batch.events[i].command, static_cast<CommandId>(i % 4));
    EXPECT_EQ(batch.events[i].finished.ns, kMs);
  }
}

TEST(SimgridExecutor, WakesAtDeadlines) {
  SimWorld world(round_machine());
  const CommandId run = world.run(Engine::Compute, kMs);
  EventBatch batch = world.wait({400'000});
  EXPECT_TRUE(batch.events.empty());
  EXPECT_EQ(batch.observed.ns, 400'000);
  // What is submitted now starts now.
  const CommandId late = world.run(Engine::CpuCompute, 100'000);
  batch = world.wait({400'000});  // reached already
  EXPECT_TRUE(batch.events.empty());
  batch = world.wait({500'000});  // an event at the deadline itself
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0].command, late);
  EXPECT_EQ(batch.observed.ns, 500'000);
  batch = world.wait({10 * kMs});
  EXPECT_EQ(batch.observed.ns, kMs);
  EXPECT_EQ(world.finished(run), kMs);
  // With nothing in flight, time still passes.
  batch = world.wait({2 * kMs});
  EXPECT_EQ(batch.observed.ns, 2 * kMs);
  const CommandId last = world.run(Engine::Compute, 5);
  world.drain();
  EXPECT_EQ(world.started(last), 2 * kMs);
}

TEST(SimgridExecutor, ZeroLengthCommandsEndWhereTheyStart) {
  SimWorld world(round_machine());
  CommandId previous = world.run(Engine::Compute, 0);
  for (int i = 0; i < 1000; ++i) previous = world.run(i % 2 ? Engine::Compute : Engine::CpuCompute, 0, {previous});
  world.copy(Engine::H2D, 0, {previous});
  const EventBatch batch = world.wait();
  EXPECT_EQ(batch.events.size(), 1002u);
  EXPECT_EQ(batch.observed.ns, 0);
  EXPECT_FALSE(world.executor().in_flight());
}

TEST(SimgridExecutor, OneByteAndOnePetabyte) {
  HardwareProfile machine = round_machine();
  machine.pcie_bytes_per_s = 16e9;
  machine.h2d.bytes_per_s = 1e9;
  memory_rate(machine, Tier::HostPinned) = 20e9;
  for (const Fidelity fidelity : {Fidelity::Alone, Fidelity::Shared}) {
    SimWorld world(machine, fidelity);
    const CommandId byte = world.copy(Engine::H2D, 1);  // 1 ns
    const CommandId petabyte = world.copy(Engine::D2H, 1'000'000 * kGB);
    const CommandId after = world.copy(Engine::D2H, 100, {petabyte});
    world.drain();
    EXPECT_EQ(world.finished(byte), 1);
    EXPECT_EQ(world.finished(petabyte), 100'000'000 * kMs);  // 10^15 bytes / 10 GB/s = 10^5 s
    EXPECT_EQ(world.finished(after) - world.finished(petabyte), 10);
  }
}

TEST(SimgridExecutor, TokensNeverStopByThemselves) {
  const TokenSource tokens = seeded_tokens(5, 3, 1);
  std::array<int, 3> seen{};
  Op op;
  for (op.step = 0; op.step < 300; ++op.step) ++seen[static_cast<std::size_t>(tokens(op, 0))];
  EXPECT_EQ(seen[1], 0);
  EXPECT_GT(seen[0], 50);
  EXPECT_GT(seen[2], 50);
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return std::int64_t{1024} * usage.ru_maxrss;
}

// A million commands through lanes that hold a few thousand at a time.
TEST(SimgridExecutor, AMillionCommandsInBoundedMemory) {
  RandomStreamOptions options;
  options.commands = 10'000;
  const RandomStream stream = random_stream(options);
  const auto graphs = stream.graph_pointers();
  SimgridExecutor executor(graphs, busy_machine(), {}, 0, Fidelity::Shared);
  std::int64_t events = 0, expected = 0;
  [[maybe_unused]] std::int64_t warm_bytes = 0;
  for (int round = 0; round < 100; ++round) {
    const CommandId shift = CommandId{round} * options.commands;
    for (Command command : stream.commands.front()) {
      command.id += shift;
      for (CommandId& wait : command.wait_for) wait += shift;
      expected += command.kind != CommandKind::Release;
      executor.submit({&command, 1});
    }
    while (executor.in_flight()) events += static_cast<std::int64_t>(executor.wait(kNever).events.size());
    if (round == 9) warm_bytes = peak_memory_bytes();
  }
  EXPECT_EQ(events, expected);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their own records grow with what is freed
  EXPECT_LT(peak_memory_bytes() - warm_bytes, std::int64_t{8} << 20) << "memory grows with the number of commands";
#endif
}

}  // namespace
}  // namespace tandem::testing
