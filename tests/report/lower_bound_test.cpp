// Bounds in closed form.
#include "report/lower_bound.hpp"

#include <gtest/gtest.h>

#include "report/analysis.hpp"
#include "report/lp.hpp"
#include "tests/report/fake_run.hpp"

namespace tandem {
namespace {

using testing::FakeRun;
using testing::TwoSteps;

constexpr double kNs = 1e-9;

LowerBound bound_of(FakeRun& run) {
  const RunRecord record = run.record();
  return lower_bound(record, make_timeline(record));
}

TEST(LinearProgram, SolvesASmallOne) {
  // least z with z >= 1 + 2x, z >= 3 - x: they meet at x = 2/3, z = 7/3
  LinearProgram program;
  const int z = program.add_variable(0, LinearProgram::kInfinity, 1), x = program.add_variable(0, 1, 0);
  program.add_row(1, LinearProgram::kInfinity, {{z, 1.0}, {x, -2.0}});
  program.add_row(3, LinearProgram::kInfinity, {{z, 1.0}, {x, 1.0}});
  EXPECT_NEAR(program.minimise(), 7.0 / 3, 1e-9);
}

TEST(LinearProgram, RefusesWhatHasNoSolution) {
  LinearProgram program;
  const int x = program.add_variable(0, 1, 1);
  program.add_row(2, LinearProgram::kInfinity, {{x, 1.0}});
  EXPECT_THROW(program.minimise(), std::runtime_error);
}

// Two steps, each 30 ns of compute, one parameter up (30 ns), one gradient down (10 ns) and an update of 20 ns. The
// path load, up, forward, backward, down, update, up, forward, backward, down, update takes all of the 190 ns.
TEST(LowerBound, ResourcesAndCriticalPathOfAChain) {
  TwoSteps run;
  const LowerBound bound = bound_of(run);
  EXPECT_NEAR(bound.step_s.at("compute"), 30 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("h2d"), 30 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("d2h"), 10 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("cpu_optimizer"), 20 * kNs, 1e-15);
  EXPECT_NEAR(bound.step_s.at("disk"), 0, 1e-15);
  EXPECT_NEAR(bound.step_s.at("critical_path"), 95 * kNs, 1e-15);
  EXPECT_NEAR(bound.overall(), 95 * kNs, 1e-15);
  EXPECT_EQ(bound.held_by, "critical_path");
  EXPECT_NEAR(bound.policy_step_s, 95 * kNs, 1e-15);
}

// When the backward starts, parameter (1,000) and activation (500) are needed on a device of 1,200 bytes: 300 bytes
// must come back in each step. The parameter comes up once for each version besides.
TEST(LowerBound, WhatDoesNotFitComesBack) {
  TwoSteps run;
  run.scenario.limits.device_bytes = 1200;
  EXPECT_NEAR(bound_of(run).step_s.at("h2d"), (1000 + 300) * 0.03 * kNs, 1e-15);
}

// Host memory of 100 bytes besides: 200 of the 1,500 bytes must be on disk in each step, written and read.
TEST(LowerBound, WhatFitsNowhereGoesThroughTheDisk) {
  TwoSteps run;
  run.scenario.limits.device_bytes = 1200;
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

// Layers that need not wait for each other, whose update may run on either side.
struct Shared : FakeRun {
  Shared(int layers, std::int64_t compute_ns, std::int64_t device_ns, std::int64_t cpu_ns) {
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 1 << 20;
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = std::to_string(layer);
      const TensorId g = tensor("g" + name, Role::Gradient, 64), p = tensor("p" + name, Role::Parameter, 64);
      const OpId b = op("backward", Phase::Backward, Engine::Compute, 0, {}, {g}, compute_ns);
      update(device_ns, cpu_ns, made_by(b), p);
    }
  }

 private:
  // Its time differs by engine: flops on the device, parameters on the CPU.
  void update(std::int64_t device_ns, std::int64_t cpu_ns, ValueId gradient, TensorId parameter) {
    scenario.machine.peak_flops[DType::F32] = 1e9;
    scenario.machine.cpu_optimizer_parameters_per_s = 1e9;
    if (work_ == kNone) {
      Work work;
      work.body = "update";
      Kernel kernel;
      kernel.kind = KernelKind::Optimizer;
      kernel.flops = device_ns;
      kernel.elements = cpu_ns;
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
    o.step = 0;
    o.reads.push_back(gradient);
    o.writes.push_back({graph.new_version(parameter), kNone});
    graph.append(std::move(o));
  }
  WorkId work_ = kNone;
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

}  // namespace
}  // namespace tandem
