// The critical path's first order beside brute force: every cause is made slower and faster, the run is simulated
// again, and the step must change by as much as the path has of the cause.
#include "analysis/interval.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "analysis/analysis.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kUs = 1'000, kMiB = std::int64_t{1} << 20, kGiB = std::int64_t{1} << 30;
constexpr double kDelta = 0.02;  // about a calibrated profile's uncertainty
// Of the step, on how much of it is a cause's. Lanes that are short of memory are held up by it more than by
// themselves, and by each other; the path counts all of a command's time as its own.
constexpr double kTolerance = 0.04, kToleranceOfSharedMemory = 0.16;

struct Predicted {
  double step_s = 0;
  PathTimes path;
};

Predicted predict(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  const RunRecord record = simulation.record();
  const Timeline timeline = make_timeline(record);
  const Steps steps = find_steps(timeline);
  return {seconds(steps.windows_ns()) / static_cast<double>(steps.window_steps()),
          path_times(timeline.ranks.front(), steps, scenario)};
}

using Scale = std::function<void(Scenario&, double factor)>;

std::int64_t times(std::int64_t ns, double factor) { return std::llround(static_cast<double>(ns) * factor); }

const std::map<TimeCause, Scale>& scales() {
  static const std::map<TimeCause, Scale> kScales{
      {TimeCause::Compute, [](Scenario& s, double factor) { s.truth.compute_time = factor; }},
      {TimeCause::Copies, [](Scenario& s, double factor) { s.truth.copy_time = factor; }},
      {TimeCause::CpuOptimizer, [](Scenario& s, double factor) { s.truth.optimizer_time = factor; }},
      {TimeCause::Dispatch,
       [](Scenario& s, double factor) {
         for (std::int64_t* ns : {&s.machine.dispatch_ns, &s.machine.event_ns, &s.machine.wake_ns})
           *ns = times(*ns, factor);
       }},
      {TimeCause::Sharing,
       [](Scenario& s, double factor) {
         for (auto& [lanes, by] : s.machine.interference) by = 1 + (by - 1) * factor;
       }},
  };
  return kScales;
}

// Copies of all lanes, those of the disk too, are scaled together.
double path_s(const PathTimes& path, TimeCause cause) {
  return path.of(cause) + (cause == TimeCause::Copies ? path.of(TimeCause::Disk) : 0);
}

void expect_first_order(const Scenario& scenario, const std::string& name) {
  const bool shares_memory = !scenario.machine.memory_weights.empty();
  const Predicted predicted = predict(scenario);
  EXPECT_EQ(predicted.path.other_s, 0);
  for (const auto& [cause, scale] : scales()) {
    // No one number scales what a shared memory or disk adds.
    if (cause == TimeCause::Sharing && scenario.machine.interference.empty()) continue;
    Scenario slower = scenario, faster = scenario;
    scale(slower, 1 + kDelta);
    scale(faster, 1 - kDelta);
    const double by_force = (predict(slower).step_s - predict(faster).step_s) / (2 * kDelta);
    EXPECT_NEAR(path_s(predicted.path, cause) / predicted.step_s, by_force / predicted.step_s,
                shares_memory ? kToleranceOfSharedMemory : kTolerance)
        << name << ", " << name_of(cause) << ", a step of " << predicted.step_s;
  }
}

Scenario with_hand_over(Scenario scenario) {
  scenario.machine.dispatch_ns = 20 * kUs;
  scenario.machine.event_ns = 60 * kUs;
  scenario.machine.wake_ns = 40 * kUs;
  scenario.steps = 6;
  return scenario;
}

TEST(IntervalBySimulation, ComputeHoldsAResidentRun) {
  expect_first_order(
      with_hand_over(layers_scenario("resident", 16 * kGiB, 4, 64 * kMiB, 2000 * kUs, 4000 * kUs, 3000 * kUs)),
      "resident");
}

TEST(IntervalBySimulation, CopiesHoldAnOffloadedRun) {
  expect_first_order(
      with_hand_over(layers_scenario("zero_offload", 16 * kGiB, 4, 64 * kMiB, 2000 * kUs, 4000 * kUs, 3000 * kUs)),
      "zero_offload");
}

TEST(IntervalBySimulation, TheDiskHoldsARunWhoseStatesLieThere) {
  Scenario scenario = with_hand_over(gpt_scenario("on_demand", 64 * kMiB));
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 * kMiB;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 16 * kGiB;
  scenario.workload.keys["hidden"] = 512;
  scenario.policy.options["home"] = "auto";
  EXPECT_GT(predict(scenario).path.of(TimeCause::Disk), 0.1 * predict(scenario).step_s);
  expect_first_order(scenario, "disk");
}

// Lanes slow each other down while they are busy: by a third at most.
TEST(IntervalBySimulation, LanesThatSlowEachOtherDown) {
  Scenario scenario =
      with_hand_over(layers_scenario("zero_offload", 16 * kGiB, 4, 64 * kMiB, 2000 * kUs, 4000 * kUs, 12000 * kUs));
  scenario.machine.interference = {{{Engine::CpuOptimizer, Engine::D2H}, 1.3},
                                   {{Engine::D2H, Engine::CpuOptimizer}, 1.2},
                                   {{Engine::Compute, Engine::D2H}, 1.1}};
  expect_first_order(scenario, "interference");
}

// The optimizer on the CPU and both copies want more of the host's memory than it gives.
TEST(IntervalBySimulation, LanesThatShareMemory) {
  Scenario scenario = with_hand_over(gpt_scenario("zero_offload", kGiB));
  scenario.workload.keys["hidden"] = 512;
  scenario.machine.cpu_optimizer_parameters_per_s = 5e8;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 16e9;
  scenario.machine.memory_weights = {{Engine::H2D, {1}}, {Engine::D2H, {1.5, 0.8}}};
  ASSERT_GT(predict(scenario).path.of(TimeCause::Sharing), 0);
  expect_first_order(scenario, "memory");
}

}  // namespace
}  // namespace tandem::testing
