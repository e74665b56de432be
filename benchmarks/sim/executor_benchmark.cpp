// The simulated executor alone: commands per second with a scheduler that costs nothing, by devices, commands and
// fidelity. The stream is layer-wise offload: fetch, compute, write back, update on the CPU.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "sim/simgrid_executor.hpp"
#include "sim/simgrid_platform.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kLayerBytes = 200 << 20;
constexpr std::int64_t kRunAhead = 64;  // commands of a rank in flight
constexpr int kMostDevices = 64, kDevicesPerHost = 8;

HardwareProfile machine() {
  HardwareProfile profile;
  profile.h2d.bytes_per_s = profile.d2h.bytes_per_s = 55e9;
  profile.h2d.latency_ns = profile.d2h.latency_ns = 10'000;
  profile.pcie_bytes_per_s = 99.5e9;
  profile.devices_per_host = kDevicesPerHost;
  profile.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s = 4.8e12;
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 600e9;
  return profile;
}

// One op for each of the compute and the optimizer lane; their times differ from rank to rank, so that ends rarely
// meet.
Graph layer_graph(Rank rank) {
  Graph graph;
  for (const auto& [engine, ns, bytes] :
       {std::tuple{Engine::Compute, 2'222'000 + 101 * rank, std::int64_t{1} << 30},
        std::tuple{Engine::CpuOptimizer, 4'000'000 + 103 * rank, std::int64_t{1} << 30}}) {
    Kernel kernel;
    kernel.kind = KernelKind::Fixed;
    kernel.fixed_ns = ns;
    kernel.bytes = bytes;
    Op op;
    op.label = graph.intern("layer");
    op.work = graph.add_work({"layer", DType::BF16, {}, {kernel}});
    op.engine = engine;
    op.engines = engine_bit(engine);
    graph.append(op);
  }
  return graph;
}

void fill_command(Command& command, Rank rank, CommandId id) {
  constexpr Engine kLanes[] = {Engine::H2D, Engine::Compute, Engine::D2H, Engine::CpuOptimizer};
  const auto stage = static_cast<std::size_t>(id % 4);
  command.id = id;
  command.lane = {rank, kLanes[stage]};
  command.kind = stage % 2 == 0 ? CommandKind::Copy : CommandKind::Run;
  command.op = static_cast<OpId>(stage / 2);
  if (stage % 2 == 0) command.part = {0, 0, kLayerBytes};
  if (stage > 0)
    command.wait_for.push_back(id - 1);
  else if (id >= 16)
    command.wait_for.push_back(id - 15);  // four buffers on the device
}

void executor_alone(benchmark::State& state) {
  const auto ranks = static_cast<Rank>(state.range(0));
  const std::int64_t a_rank = state.range(1) / ranks;
  const auto fidelity = static_cast<Fidelity>(state.range(2));
  SimgridPlatform::reserve(kMostDevices / kDevicesPerHost, kDevicesPerHost);
  std::vector<Graph> graphs;
  for (Rank rank = 0; rank < ranks; ++rank) graphs.push_back(layer_graph(rank));
  std::vector<const Graph*> pointers;
  for (const Graph& graph : graphs) pointers.push_back(&graph);
  const HardwareProfile profile = machine();
  for (auto _ : state) {
    SimgridExecutor executor(pointers, profile, {}, 0, fidelity);
    std::vector<Command> commands;
    std::vector<CommandId> next(static_cast<std::size_t>(ranks));
    const auto refill = [&](Rank rank, std::int64_t count) {
      CommandId& id = next[static_cast<std::size_t>(rank)];
      for (; count > 0 && id < a_rank; --count) fill_command(commands.emplace_back(), rank, id++);
    };
    for (Rank rank = 0; rank < ranks; ++rank) refill(rank, kRunAhead);
    executor.submit(commands);
    while (executor.in_flight()) {
      commands.clear();
      for (const Event& event : executor.wait(kNever).events) refill(event.rank, 1);
      executor.submit(commands);
    }
  }
  state.counters["commands"] =
      benchmark::Counter(static_cast<double>(a_rank * ranks), benchmark::Counter::kIsIterationInvariantRate);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const Fidelity fidelity : {Fidelity::Alone, Fidelity::Shared}) {
    for (const std::int64_t devices : {1, 2, 4, 8, 16, 32, 64})
      benchmark->Args({devices, 100'000, static_cast<std::int64_t>(fidelity)});
    for (const std::int64_t commands : {1'000, 10'000, 1'000'000})
      benchmark->Args({1, commands, static_cast<std::int64_t>(fidelity)});
    benchmark->Args({64, 1'000'000, static_cast<std::int64_t>(fidelity)});
  }
}
BENCHMARK(executor_alone)->Apply(sizes)->ArgNames({"devices", "commands", "shared"})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
