// No simulated run has shorter steps than its lower bounds: over policies, families, capacities, truths and fidelities.
#include "analysis/lower_bound.hpp"

#include <gtest/gtest.h>

#include <random>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

class Pick {
 public:
  explicit Pick(std::uint64_t seed) : random_(seed) {}
  template <typename T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[random_() % choices.size()];
  }

 private:
  std::mt19937_64 random_;
};

Scenario random_scenario(const std::string& policy, Pick& pick) {
  constexpr std::int64_t kMiB = 1 << 20;
  constexpr std::int64_t kMs = 1'000'000;
  Scenario s =
      pick.of({true, false})
          ? gpt_scenario(policy, pick.of({kMiB, 2 * kMiB, 3 * kMiB, 64 * kMiB}), pick.of({2, 6}))
          : layers_scenario(policy, pick.of({160 * kMiB, 400 * kMiB, 4000 * kMiB}), pick.of({1, 3, 8}), 16 * kMiB,
                            pick.of({kMs, 4 * kMs}), pick.of({2 * kMs, 8 * kMs}), pick.of({kMs, 20 * kMs}));
  if (s.workload.family == "gpt") {
    s.workload.batch = pick.of({2, 16});
    s.workload.micro_batches = pick.of({1, 2, 3});
    s.workload.recompute = pick.of<const char*>({"none", "block"});
    s.workload.precision = pick.of({DType::F32, DType::BF16});
    s.workload.devices = pick.of({1, 1, 2});
    if (policy != "l2l" && policy != "lsp_offload" && policy != "one_bit_adam")
      s.workload.partition = pick.of<const char*>({"none", "states", "parameters"});
  }
  s.machine.h2d.latency_ns = s.machine.d2h.latency_ns = pick.of({0, 5000});
  s.machine.pcie_bytes_per_s = pick.of({0.0, 1.2e10});
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = pick.of({1e11, 1.5e10});
  if (pick.of({true, false})) {  // host memory too small for all: what is left over goes to the disk
    s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = std::int64_t{1} << 40;
    s.limits.host_bytes = pick.of({2 * kMiB, 8 * kMiB, 300 * kMiB});
  }
  s.truth.copy_time = pick.of({1.0, 1.3, 0.7});
  s.truth.compute_time = pick.of({1.0, 0.8, 2.0});
  s.truth.optimizer_time = pick.of({1.0, 1.5, 0.5});
  s.steps = pick.of({1, 2, 4, 9});
  if (s.workload.family == "gpt") s.validation = {.every = pick.of({0, 1, 3}), .batches = 2};
  return s;
}

// Durations are rounded to a nanosecond, one by one.
double rounding_s(const Analysis& analysis) {
  return 1e-9 * static_cast<double>(analysis.timeline.commands_count) + 1e-9 * analysis.mean_step_s;
}

// All of the work of the steps between the first and the last lies within the run, whatever was done ahead or after.
std::int64_t whole_steps(std::int64_t steps) { return std::max<std::int64_t>(1, steps - 2); }

TEST(LowerBoundProperty, NoRunIsShorter) {
  constexpr int kRunsAPolicy = 60;
  int runs = 0, tight = 0;
  for (const PolicyEntry* policy : policies()) {
    Pick pick(7);
    for (int i = 0; i < kRunsAPolicy; ++i) {
      const Scenario scenario = random_scenario(std::string(policy->name), pick);
      const Fidelity fidelity = pick.of({Fidelity::Shared, Fidelity::Alone});
      try {
        Simulation simulation(scenario, fidelity);
        simulation.run();
        const RunRecord record = simulation.record();
        const Analysis analysis = analyse(record);
        const double longest = (seconds(analysis.timeline.makespan.ns) + rounding_s(analysis)) /
                               static_cast<double>(whole_steps(scenario.steps));
        for (const auto& [resource, s] : analysis.bound.step_s) {
          if (resource == "states_on_host") continue;  // policies may keep states on the device
          EXPECT_LE(s, longest) << policy->name << ' ' << i << ' ' << scenario.workload.family << ' ' << resource;
        }
        EXPECT_LE(analysis.bound.policy_step_s,
                  std::max(analysis.steady_step_s + rounding_s(analysis), analysis.bound.overall()))
            << policy->name << ' ' << i << ' ' << analysis.bound.policy_held_by;
        EXPECT_LE(analysis.bound.overall(), analysis.bound.policy_step_s * (1 + 1e-9));
        ++runs;
        tight += analysis.bound.overall() > 0.5 * analysis.steady_step_s ? 1 : 0;
      } catch (const DoesNotFit&) {  // some must not fit; enough do
      }
    }
  }
  EXPECT_GE(runs, kRunsAPolicy);
  EXPECT_GE(tight, runs / 10) << "of " << runs << ": bounds that bind nowhere would pass too";
}

}  // namespace
}  // namespace tandem::testing
