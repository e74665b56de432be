// The lower bound against all schedules of tiny steps (R8): none is below it, and the best comes near it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/scheduler/driver.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/common/exhaustive_policy.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr double kRoundingNs = 100;  // half a nanosecond for each command

class LastEnd final : public EventLog {
 public:
  void append(const EventBatch& batch) override {
    for (const Event& event : batch.events) ns = std::max(ns, event.finished.ns);
  }
  void append(std::span<const Command>) override {}

  std::int64_t ns = 0;
};

struct Schedules {
  std::int64_t count = 0, refused = 0, best_ns = std::numeric_limits<std::int64_t>::max();
};

Schedules all_schedules(const Scenario& scenario, Fidelity fidelity, bool halves) {
  Schedules all;
  Choices choices;
  do {
    const CostModel estimate(scenario.machine);
    auto policy = std::make_unique<ExhaustivePolicy>(choices, halves);
    auto source = find_workload(scenario.workload.family)->make(scenario, policy->traits().rewrites);
    Scheduler scheduler(scenario, estimate, std::move(source), std::move(policy));
    const Graph* graphs[] = {&scheduler.graph()};
    SimgridExecutor executor(graphs, scenario.machine, scenario.truth, scenario.seed, fidelity);
    LastEnd last;
    Scheduler* ranks[] = {&scheduler};
    try {
      drive(ranks, executor, last);
      all.best_ns = std::min(all.best_ns, last.ns);
      ++all.count;
    } catch (const DoesNotFit&) {
      ++all.refused;
    }
  } while (choices.next());
  return all;
}

double bound_s(const Scenario& scenario, Fidelity fidelity) {
  Simulation simulation(scenario, fidelity);
  simulation.run();
  return analyse(simulation.record()).bound.overall();
}

struct Tiny {
  int layers, steps;
  bool halves;  // of updates, on both processors
  std::int64_t layer_bytes;
  std::int64_t device_layers;  // parameters of so many layers fit on the device; 0: all and more
};
constexpr std::int64_t kSmall = std::int64_t{1} << 17, kLarge = std::int64_t{8} << 20;
// As many as two seconds have time for. A layer has one of parameters, one of gradients and six of states.
constexpr Tiny kTiny[] = {{1, 1, true, kSmall, 0}, {1, 2, true, kLarge, 0}, {1, 3, true, kSmall, 0},
                          {2, 1, true, kSmall, 0}, {2, 1, true, kLarge, 9}, {2, 1, true, kLarge, 3},
                          {2, 2, false, kLarge, 0}};

// Nor do the steps together take less than as many times the bound.
TEST(ExactBound, NoScheduleOfATinyRunIsBelowIt) {
  double nearest = 0, farthest = 1;
  std::int64_t schedules = 0, refused = 0;
  for (const Tiny& tiny : kTiny)
    for (const std::int64_t update_ns : {1 * kMs, 30 * kMs}) {
      Scenario scenario = layers_scenario("on_demand", std::int64_t{1} << 34, tiny.layers, tiny.layer_bytes, 2 * kMs,
                                          4 * kMs, update_ns);
      if (tiny.device_layers > 0) scenario.limits.device_bytes = tiny.device_layers * tiny.layer_bytes + 4096;
      scenario.steps = tiny.steps;
      scenario.machine.pcie_bytes_per_s = tiny.layers == 1 ? 0 : 1.5e10;
      if (tiny.device_layers == 3) scenario.policy.options["optimizer"] = "cpu";  // of the run that the bound is of
      const Fidelity fidelity = update_ns == kMs ? Fidelity::Alone : Fidelity::Shared;
      const double all_steps_ns = bound_s(scenario, fidelity) * tiny.steps * 1e9;
      const Schedules all = all_schedules(scenario, fidelity, tiny.halves);
      ASSERT_GT(all.count, 0);
      EXPECT_LE(all_steps_ns, static_cast<double>(all.best_ns) + kRoundingNs)
          << tiny.layers << " layers, " << tiny.steps << " steps, " << update_ns << ", " << tiny.layer_bytes;
      schedules += all.count;
      refused += all.refused;
      nearest = std::max(nearest, all_steps_ns / static_cast<double>(all.best_ns));
      farthest = std::min(farthest, all_steps_ns / static_cast<double>(all.best_ns));
    }
  std::printf(
      "%lld schedules, %lld more do not fit; bounds are %.2f to %.2f of the best, which loads what it begins "
      "with, too\n",
      static_cast<long long>(schedules), static_cast<long long>(refused), farthest, nearest);
  EXPECT_GT(nearest, 0.9) << "bounds that bind nowhere would pass, too";
}

}  // namespace
}  // namespace tandem::testing
