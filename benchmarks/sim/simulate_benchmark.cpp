// Scheduler plus SimGrid: timed commands per second (releases cost nothing in SimGrid and are not counted) of a
// 48-layer GPT that is offloaded, from 1 to 64 devices and 1,000 to 1,000,000 commands, graph growth included.
#include <benchmark/benchmark.h>

#include <string>

#include "core/run/load.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"

namespace tandem {
namespace {

constexpr int kMostDevices = 64, kDevicesPerHost = 8;

class CountingLog final : public EventLog {
 public:
  void append(const EventBatch& batch) override {
    events += static_cast<std::int64_t>(batch.events.size());
    if (!batch.events.empty()) last = batch.observed;
  }
  void append(std::span<const Command>) override {}
  std::int64_t events = 0;
  TimeNs last;
};

Scenario offloaded_gpt(std::int64_t devices, std::int64_t steps, const std::string& policy) {
  Scenario scenario = parse_scenario(
      "machine: h200\n"
      "limits: {device_bytes: 60GiB}\n"
      "workload: {family: gpt, layers: 48, hidden: 2048, heads: 16, vocabulary: 50304, sequence: 1024, batch: 4,"
      " precision: bf16, recompute: block}\n"
      "policy: {name: " +
          policy +
          "}\n"
          "steps: " +
          std::to_string(steps) + "\n",
      "benchmark");
  scenario.workload.devices = devices;
  scenario.machine.devices_per_host = kDevicesPerHost;
  // Every rank needs its states in host memory: as many hosts as that takes.
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes *= devices;
  return scenario;
}

std::int64_t commands_of_a_step() {
  static const std::int64_t kCount = [] {
    const auto events_of = [](std::int64_t steps) {
      const Scenario scenario = offloaded_gpt(1, steps, "zero_offload");
      Simulation simulation(scenario);
      CountingLog log;
      simulation.run_into(log);
      return log.events;
    };
    return (events_of(6) - events_of(2)) / 4;
  }();
  return kCount;
}

void simulate_offloaded(benchmark::State& state) {
  SimgridPlatform::reserve(kMostDevices / kDevicesPerHost, kDevicesPerHost);
  const std::int64_t devices = state.range(0);
  const std::int64_t steps = std::max<std::int64_t>(1, state.range(1) / devices / commands_of_a_step());
  const Scenario scenario = offloaded_gpt(devices, steps, "zero_offload");
  std::int64_t events = 0;
  for (auto _ : state) {
    Simulation simulation(scenario, static_cast<Fidelity>(state.range(2)));
    CountingLog log;
    simulation.run_into(log);
    events = log.events;
  }
  const auto count = static_cast<double>(events);
  state.counters["commands"] = count;
  state.counters["commands/s"] = benchmark::Counter(count, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["s/step"] = benchmark::Counter(
      static_cast<double>(steps), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const Fidelity fidelity : {Fidelity::Alone, Fidelity::Shared}) {
    const auto shared = static_cast<std::int64_t>(fidelity);
    for (const std::int64_t commands : {1'000, 10'000, 100'000, 1'000'000}) benchmark->Args({1, commands, shared});
    for (const std::int64_t devices : {2, 4, 8, 16, 32, 64}) benchmark->Args({devices, 100'000, shared});
    benchmark->Args({kMostDevices, 1'000'000, shared});
  }
}
BENCHMARK(simulate_offloaded)->Apply(sizes)->ArgNames({"devices", "commands", "shared"})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
