// Bounds in closed form.
#include "analysis/lower_bound.hpp"

#include <gtest/gtest.h>

#include "analysis/analysis.hpp"
#include "analysis/crowded_moments.hpp"
#include "analysis/lp.hpp"
#include "analysis/policy_load.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using testing::FakeRun;
using testing::TwoSteps;

constexpr double kNs = 1e-9;

// What is counted quickly is no less than what any moment has: see most_at_a_moment.
void expect_most_at_a_moment(const Graph& graph) {
  const SteadyState steady = steady_state(graph);
  if (steady.steps == 0) return;
  const Sides sides = sort_sides(graph, steady);
  const double most = most_at_a_moment(graph, sides, steady);
  for (const CrowdedMoment& moment : crowded_moments(graph, sides, steady, /*small_bytes=*/0)) {
    double bytes = moment.live_bytes + moment.held_bytes;
    for (const CrowdedMoment::State& state : moment.states) bytes += static_cast<double>(state.bytes);
    EXPECT_LE(bytes, most);
  }
}

LowerBound bound_of(FakeRun& run) {
  const RunRecord record = run.record();
  expect_most_at_a_moment(run.graph);
  const Timeline timeline = make_timeline(record);
  return lower_bound(record, timeline, find_steps(timeline));
}

TEST(LinearProgram, SolvesASmallOne) {
  // least z with z >= 1 + 2x, z >= 3 - x: they meet at x = 2/3, z = 7/3
  LinearProgram program;
  const int z = program.add_variable(0, LinearProgram::kInfinity, 1), x = program.add_variable(0, 1, 0);
  program.add_row(1, LinearProgram::kInfinity, {{z, 1.0}, {x, -2.0}});
  program.add_row(3, LinearProgram::kInfinity, {{z, 1.0}, {x, 1.0}});
  EXPECT_NEAR(program.minimise(), 7.0 / 3, 1e-9);
  const auto solution = program.solve();
  ASSERT_TRUE(solution);
  EXPECT_NEAR(solution->values[0], 7.0 / 3, 1e-9);
  EXPECT_NEAR(solution->values[1], 2.0 / 3, 1e-9);
  // One more in the first row: they meet at x = 1/3, z = 8/3; in the second: at x = 1, z = 3.
  EXPECT_NEAR(solution->duals[0], 1.0 / 3, 1e-9);
  EXPECT_NEAR(solution->duals[1], 2.0 / 3, 1e-9);
}

TEST(LinearProgram, RefusesWhatHasNoSolution) {
  LinearProgram program;
  const int x = program.add_variable(0, 1, 1);
  program.add_row(2, LinearProgram::kInfinity, {{x, 1.0}});
  EXPECT_THROW(program.minimise(), std::runtime_error);
  EXPECT_FALSE(program.solve());
}

// Two steps, each 30 ns of compute, one parameter up (30 ns), one gradient down (10 ns) and an update of 20 ns. Each
// waits for the one before: a step takes 90 ns, to which the run adds 10 for the parameter's initial value.
TEST(LowerBound, ResourcesAndCriticalPathOfAChain) {
  TwoSteps run;
  const LowerBound bound = bound_of(run);
  EXPECT_NEAR(bound.step_s.at("compute"), 30 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("h2d"), 30 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("d2h"), 10 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("cpu_optimizer"), 20 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("disk"), 0, 1e-15);
  EXPECT_NEAR(bound.step_s.at("critical_path"), 90 * kNs, 1e-15);
  EXPECT_NEAR(bound.overall(), 90 * kNs, 1e-15);
  EXPECT_EQ(bound.held_by, "critical_path");
  EXPECT_NEAR(bound.policy_step_s, 90 * kNs, 1e-15);
}

// Initial values, saves and evaluations with their batches do not recur; a training batch does.
TEST(LowerBound, CountsOnlyWhatRecurs) {
  TwoSteps run;
  const auto loaded = [&](std::int32_t step, std::int64_t ns) {
    const TensorId tensor = run.tensor("loaded", Role::Parameter, 1 << 20, step == kNone);
    return run.made_by(run.op("load", Phase::Load, Engine::Loader, step, {}, {tensor}, ns));
  };
  run.op("more_forward", Phase::Forward, Engine::Compute, 1, {loaded(kNone, 5000), loaded(1, 40)}, {}, 1);
  run.op("evaluate", Phase::Evaluate, Engine::Compute, 1, {loaded(1, 6000)}, {}, 7000);
  run.op("save", Phase::Save, Engine::Loader, 1, {}, {}, 8000);
  const LowerBound bound = bound_of(run);
  EXPECT_NEAR(bound.step_s.at("loader"), 40 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("compute"), 31 * kNs, 1e-15);
  // The batch of 1 MiB goes up besides the parameter; the tensor that is there from the start does not.
  EXPECT_NEAR(bound.step_s.at("h2d"), ((1 << 20) + 1000) * 0.03 * kNs, 1e-12);
}

// Under delayed update the second step still uses the initial parameters: the third is the first that counts.
TEST(LowerBound, AStepThatUsesInitialValuesDoesNotCount) {
  FakeRun run;
  const TensorId p = run.tensor("p", Role::Parameter, 8, true);
  std::vector<ValueId> versions{run.made_by(run.op("load", Phase::Load, Engine::Loader, kNone, {}, {p}, 5))};
  versions.push_back(versions.front());
  for (std::int32_t step = 0; step < 4; ++step) {
    const ValueId in_use = versions[static_cast<std::size_t>(step)];
    run.op("forward", Phase::Forward, Engine::Compute, step, {in_use}, {}, 10);
    versions.push_back(run.made_by(run.op("update", Phase::OptimizerStep, Engine::CpuOptimizer, step, {}, {p}, 5)));
  }
  const SteadyState steady = steady_state(run.graph);
  EXPECT_EQ(steady.first, 2);
  EXPECT_EQ(steady.steps, 2);
}

// From 70 to 160 ns the lanes do one step's work, whatever they did before.
TEST(LowerBound, ThePolicysLoadIsThatOfTheTimedSteps) {
  TwoSteps run;
  run.scenario.machine.d2h.bytes_per_s = 1e9;  // 1,000 ns for the gradient; the second one ends after the window
  EXPECT_NEAR(bound_of(run).step_s.at("d2h"), 1000 * kNs, 1e-13);
  const RunRecord record = run.record();
  const Timeline timeline = make_timeline(record);
  const CostModel cost(run.scenario.machine);
  const PolicyLoad load = policy_load(timeline.ranks[0], find_steps(timeline).windows, steady_state(run.graph), cost,
                                      rates_of(run.scenario, true));
  EXPECT_NEAR(load.seconds, (1000 + 990) * kNs, 1e-13);  // 10 ns of the second lie outside
  EXPECT_EQ(load.resource, "d2h");
}

// While the backward runs, parameter (1,000), activation (500) and its gradient (1,000) are needed on a device of 2,200
// bytes: 300 bytes must come back in each step. The parameter comes up once for each version besides.
TEST(LowerBound, WhatDoesNotFitComesBack) {
  TwoSteps run;
  run.scenario.limits.device_bytes = 2200;
  EXPECT_NEAR(bound_of(run).step_s.at("h2d"), (1000 + 300) * 0.03 * kNs, 1e-15);
}

// Host memory of 100 bytes besides: 200 of the 2,500 bytes must be on disk in each step, written and read.
TEST(LowerBound, WhatFitsNowhereGoesThroughTheDisk) {
  TwoSteps run;
  run.scenario.limits.device_bytes = 2200;
  run.scenario.limits.host_bytes = 100;
  run.scenario.machine.disk_read.bytes_per_s = 1e9;
  run.scenario.machine.disk_write.bytes_per_s = 2e9;
  EXPECT_NEAR(bound_of(run).step_s.at("disk"), 200 * kNs, 1e-15);
}

TEST(LowerBound, TheTruthsFactorsCount) {
  TwoSteps run;
  run.scenario.truth.copy_time = 2;
  run.scenario.truth.compute_time = 3;
  run.scenario.truth.optimizer_time = 5;
  const LowerBound bound = bound_of(run);
  EXPECT_NEAR(bound.step_s.at("h2d"), 60 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("compute"), 90 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("cpu_optimizer"), 100 * kNs, 1e-15);
}

TEST(LowerBound, SharedPcieHoldsBothDirections) {
  TwoSteps run;
  run.scenario.machine.pcie_bytes_per_s = 1e9;  // 2,000 bytes a step
  const LowerBound bound = bound_of(run);
  EXPECT_NEAR(bound.step_s.at("pcie"), 2000 * kNs, 1e-13);
  EXPECT_EQ(bound.held_by, "pcie");
}

// Runs whose updates may run on either side, all of one class.
struct EitherSide : FakeRun {
  OpId update(const Kernel& kernel, std::int32_t step, const std::vector<ValueId>& reads,
              const std::vector<TensorId>& writes) {
    if (work_ == kNone) {
      Work work;
      work.body = "update";
      work.kernels.push_back(kernel);
      work_ = graph.add_work(work);
    }
    Op o;
    o.label = graph.intern("update");
    o.work = work_;
    o.phase = Phase::OptimizerStep;
    o.engine = Engine::CpuOptimizer;
    o.engines = static_cast<std::uint16_t>(engine_bit(Engine::CpuOptimizer) | engine_bit(Engine::Compute));
    o.divisible = true;
    o.step = step;
    for (ValueId read : reads) o.reads.push_back(read);
    for (TensorId write : writes) o.writes.push_back({graph.new_version(write), kNone});
    return graph.append(std::move(o));
  }

 private:
  WorkId work_ = kNone;
};

// Layers that need not wait for each other. An update's time differs by engine: flops on the device, parameters on the
// CPU.
struct Shared : EitherSide {
  Shared(int layers, std::int64_t compute_ns, std::int64_t device_ns, std::int64_t cpu_ns) {
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 1 << 20;
    scenario.machine.peak_flops[DType::F32] = 1e9;
    scenario.machine.cpu_optimizer_parameters_per_s = 1e9;
    Kernel kernel;
    kernel.kind = KernelKind::Optimizer;
    kernel.flops = device_ns;
    kernel.elements = cpu_ns;
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = std::to_string(layer);
      const TensorId g = tensor("g" + name, Role::Gradient, 64), p = tensor("p" + name, Role::Parameter, 64);
      const OpId b = op("backward", Phase::Backward, Engine::Compute, 0, {}, {g}, compute_ns);
      update(kernel, 0, {made_by(b)}, {p});
    }
  }
};

// Four layers of 25 ns; updates of 5 ns on the device or 75 ns on the CPU. With the share x on the device:
// 100 + 20 x = 300 (1 - x), x = 0.625, 112.5 ns.
TEST(LowerBound, SharesBalanceDeviceAndCpu) {
  Shared run(4, 25, 5, 75);
  const LowerBound bound = bound_of(run);
  EXPECT_NEAR(bound.overall(), 112.5 * kNs, 1e-14);
  EXPECT_EQ(bound.held_by, "shares");
  EXPECT_NEAR(bound.step_s.at("compute"), 100 * kNs, 1e-14);  // all updates on the CPU
  EXPECT_EQ(bound.step_s.count("cpu_optimizer"), 1u);
  EXPECT_NEAR(bound.step_s.at("cpu_optimizer"), 0, 1e-14);  // all on the device
}

// The same with gradients of 64 bytes that take 1 ns a byte down: those updated on the CPU need 256 (1 - x) ns of D2H,
// which binds less than the CPU's 300 (1 - x). At 2 ns a byte it binds more: 100 + 20 x = 512 (1 - x), x = 412/532.
TEST(LowerBound, SharesPayForTheirGradients) {
  Shared run(4, 25, 5, 75);
  run.scenario.machine.d2h.bytes_per_s = 1e9;
  EXPECT_NEAR(bound_of(run).overall(), 112.5 * kNs, 1e-14);
  run.scenario.machine.d2h.bytes_per_s = 0.5e9;
  EXPECT_NEAR(bound_of(run).overall(), (100 + 20 * 412.0 / 532) * kNs, 1e-14);
}

// Three steps of one layer: parameter and gradient of 100 bytes, an activation of 50, optimizer states of 600. Compute
// takes 30 ns. An update takes none of the device's time, but 1,000 ns and 2,800 bytes of DRAM on the CPU. Copies take
// 1 ns a byte. x is the share that is updated on the device.
struct Stateful : EitherSide {
  explicit Stateful(std::int64_t forward_workspace = 0) {
    HardwareProfile& machine = scenario.machine;
    tier(Tier::Device).capacity_bytes = tier(Tier::HostPinned).capacity_bytes = 1 << 20;
    tier(Tier::Device).bytes_per_s = 1e15;
    machine.h2d.bytes_per_s = machine.d2h.bytes_per_s = 1e9;
    machine.cpu_optimizer_parameters_per_s = 1e9;
    Kernel kernel;
    kernel.kind = KernelKind::Optimizer;
    kernel.elements = 1000;
    kernel.bytes = 2800;
    const TensorId p = tensor("p", Role::Parameter, 100, true), s = tensor("s", Role::OptimizerState, 600, true);
    const TensorId a = tensor("a", Role::Activation, 50), g = tensor("g", Role::Gradient, 100);
    const OpId load = op("load", Phase::Load, Engine::Loader, kNone, {}, {p, s}, 5000);
    ValueId parameter = made_by(load), state = made_by(load, 1);
    for (std::int32_t step = 0; step < 3; ++step) {
      const OpId f =
          op("forward", Phase::Forward, Engine::Compute, step, {parameter}, {a}, 10, 0, false, forward_workspace);
      const OpId b = op("backward", Phase::Backward, Engine::Compute, step, {parameter, made_by(f)}, {g}, 20);
      const OpId u = update(kernel, step, {made_by(b), state}, {p, s});
      parameter = made_by(u);
      state = made_by(u, 1);
    }
  }
  TierInfo& tier(Tier which) { return scenario.machine.tiers[static_cast<std::size_t>(which)]; }
};

TEST(LowerBound, StatesThatFitStay) {
  Stateful run;
  EXPECT_NEAR(bound_of(run).overall(), 30 * kNs, 1e-14);
}

// 550 bytes of device memory. Up: parameters updated on the CPU and the states beyond 550 - 250 bytes (the backward's
// parameter, activation and gradient), 100 (1 - x) + 600 x - 300, against 1,000 (1 - x) on the CPU: x = 0.8, 200 ns.
TEST(LowerBound, StatesThatDoNotFitComeUp) {
  Stateful run;
  run.scenario.limits.device_bytes = 550;
  EXPECT_NEAR(bound_of(run).overall(), 200 * kNs, 1e-14);
}

// The same with 4 ns a byte down: gradients of what the CPU updates, and states beyond 550 - 150 bytes (the parameter
// makes room): 4 (100 (1 - x) + 600 x - 400) = 1,000 (1 - x), x = 11/15.
TEST(LowerBound, StatesThatComeUpHaveGoneDown) {
  Stateful run;
  run.scenario.limits.device_bytes = 550;
  run.scenario.machine.d2h.bytes_per_s = 0.25e9;
  EXPECT_NEAR(bound_of(run).overall(), 1000 * 4.0 / 15 * kNs, 1e-14);
}

// What the forward takes for itself while it runs, 200 bytes, is more than the backward's gradient: as with 450 bytes.
TEST(LowerBound, TheLastForwardsWorkspaceIsHeldToo) {
  Stateful run(200);
  run.scenario.limits.device_bytes = 550;
  const double with_workspace = bound_of(run).overall();
  Stateful smaller;
  smaller.scenario.limits.device_bytes = 450;
  EXPECT_NEAR(with_workspace, bound_of(smaller).overall(), 1e-14);
  EXPECT_GT(with_workspace, 200 * kNs);
}

// With states on the host, whatever the device could hold: each way 100 (1 - x) + 600 x; x = 0.6, 400 ns.
TEST(LowerBound, StatesOnTheHostCrossBothWays) {
  Stateful run;
  EXPECT_NEAR(bound_of(run).step_s.at("states_on_host"), 400 * kNs, 1e-14);
  run.scenario.machine.pcie_bytes_per_s = 1e9;  // both directions: 200 + 1,000 x, x = 0.4
  EXPECT_NEAR(bound_of(run).step_s.at("states_on_host"), 600 * kNs, 1e-14);
}

// DRAM at 4 bytes/ns: (200 + 1,000 x + 2,800 (1 - x)) / 4 against 100 + 500 x of each direction, x = 13/19.
TEST(LowerBound, CopiesAndUpdatesShareTheHostsMemory) {
  Stateful run;
  run.tier(Tier::HostPinned).bytes_per_s = 4e9;
  EXPECT_NEAR(bound_of(run).step_s.at("states_on_host"), (100 + 500 * 13.0 / 19) * kNs, 1e-14);
}

}  // namespace
}  // namespace tandem
