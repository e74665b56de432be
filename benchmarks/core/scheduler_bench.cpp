// The scheduler alone: commands per second through the null executor, by policy and by length of the run, and seconds
// by layers where memory is nearly full.
#include <benchmark/benchmark.h>

#include <string>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/null_executor.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

// A 48-layer GPT of 1.2 billion parameters in bf16 on a 24 GiB device.
Scenario gpt48(const char* policy, std::int32_t steps) {
  Scenario s = testing::gpt_scenario(policy, std::int64_t{24} << 30, 48);
  s.workload.keys["hidden"] = 1536;
  s.workload.keys["heads"] = 16;
  s.workload.keys["vocabulary"] = 50304;
  s.workload.keys["sequence"] = 1024;
  s.workload.batch = 2;
  s.workload.precision = DType::BF16;
  s.steps = steps;
  return s;
}

void scheduler_alone(benchmark::State& state, const char* policy) {
  const Scenario scenario = gpt48(policy, static_cast<std::int32_t>(state.range(0)));
  const CostModel estimate(scenario.machine);
  std::int64_t commands = 0, timed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto scheduler = make_scheduler(scenario, estimate);
    NullExecutor executor(NullExecutor::Options{});
    struct Counter final : EventLog {
      std::int64_t commands = 0, timed = 0;
      void append(const EventBatch& batch) override { timed += static_cast<std::int64_t>(batch.events.size()); }
      void append(std::span<const Command> added) override { commands += static_cast<std::int64_t>(added.size()); }
    } counter;
    Scheduler* ranks[] = {scheduler.get()};
    state.ResumeTiming();
    drive(ranks, executor, counter);
    commands += counter.commands;
    timed += counter.timed;
  }
  state.counters["commands/s"] = benchmark::Counter(static_cast<double>(commands), benchmark::Counter::kIsRate);
  state.counters["timed/s"] = benchmark::Counter(static_cast<double>(timed), benchmark::Counter::kIsRate);
  state.counters["commands"] = static_cast<double>(commands) / static_cast<double>(state.iterations());
  state.counters["timed_a_step"] =
      static_cast<double>(timed) / static_cast<double>(state.iterations()) / static_cast<double>(state.range(0));
}
BENCHMARK_CAPTURE(scheduler_alone, zero_offload, "zero_offload")
    ->Arg(2)
    ->Arg(20)
    ->Arg(200)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(scheduler_alone, cotrain, "cotrain")->Arg(2)->Arg(20)->Arg(200)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(scheduler_alone, on_demand, "on_demand")->Arg(2)->Arg(20)->Arg(200)->Unit(benchmark::kMillisecond);

void run_to_the_end(const Scenario& scenario) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  NullExecutor::Options options;
  options.events_a_wait = 2;  // decisions are taken late, as on a machine
  NullExecutor executor(options);
  struct Silent final : EventLog {
    void append(const EventBatch&) override {}
    void append(std::span<const Command>) override {}
  } log;
  Scheduler* ranks[] = {scheduler.get()};
  try {
    drive(ranks, executor, log);
  } catch (const DoesNotFit&) {  // work all the same
  }
}

// All states on a disk, which holds those of about 460 layers.
void nearly_full_disk(benchmark::State& state) {
  const Scenario scenario = parse_scenario(
      "machine: dgx2_v100\nworkload: {family: gpt, layers: " + std::to_string(state.range(0)) +
          ", hidden: 18432, heads: 128, vocabulary: 50257, sequence: 1024, batch: 1, precision: fp16,"
          " attention: unfused, linear_tiles: 2, recompute: block}\n"
          "policy: {name: zero_infinity, parameters: disk, gradients: disk, optimizer_states: disk}\nsteps: 1\n",
      "benchmark");
  for (auto _ : state) run_to_the_end(scenario);
}
BENCHMARK(nearly_full_disk)->Arg(115)->Arg(230)->Arg(440)->Arg(459)->Arg(464)->Arg(490)->Unit(benchmark::kMillisecond);

// A device that holds 60% of what a step of so many layers would take of it.
void nearly_full_device(benchmark::State& state) {
  constexpr std::int64_t kBytesALayer = 550'000;
  Scenario scenario =
      testing::gpt_scenario("on_demand", state.range(0) * kBytesALayer, static_cast<int>(state.range(0)));
  scenario.steps = 1;
  for (auto _ : state) run_to_the_end(scenario);
}
BENCHMARK(nearly_full_device)->RangeMultiplier(2)->Range(100, 1600)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
