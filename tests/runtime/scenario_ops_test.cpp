// A scenario's ops timed in place: which there are, and that a profile which has them predicts by them. Never how long
// they take.
#include "calibration/scenario_ops.hpp"

#include <gtest/gtest.h>

#include "adapt/profile_ops.hpp"
#include "calibration/dry_run.hpp"
#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/run/load.hpp"
#include "core/step/placement.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/body_table.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/common/source_dir.hpp"
#include "tests/executors/thread_device.hpp"
#include "tests/runtime/host_bodies.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario small_gpt(const std::string& policy, std::int64_t device_bytes = 64 * kMiB, int layers = 2) {
  Scenario s = testing::gpt_scenario(policy, device_bytes, layers);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.data_text = source_path("README.md");
  return s;
}

ScenarioOpsOptions quick() {
  ScenarioOpsOptions options;
  options.seconds = 20;  // never used up: any spread will do
  options.error = 1e6;
  options.source = "test";
  return options;
}

std::string names(const std::vector<OpKey>& ops) {
  std::string text;
  for (const OpKey& op : ops) text += op.body + (op.on_cpu ? " on the CPU, " : ", ");
  return text;
}

void expect_sound(const LearntOps& learnt) {
  for (const auto& [key, op] : learnt) {
    const MeasuredTime& time = op.op.usual();
    EXPECT_GT(time.samples, 0) << key.body;
    EXPECT_LE(time.p10_ns, time.median_ns) << key.body;
    EXPECT_GE(time.p90_ns, time.median_ns) << key.body;
    EXPECT_EQ(op.op.source, "test") << key.body;
  }
}

TEST(ScenarioOps, EachOpOfAScenarioHasARow) {
  Scenario scenario = small_gpt("resident");
  scenario.workload.micro_batches = 2;  // the second adds to what the first has summed
  scenario.optimizer.clip_norm = 1;
  const ScenarioOps ops = time_scenario_ops(scenario, quick());
  EXPECT_EQ(names(ops.missing()), "");
  EXPECT_EQ(ops.learnt.size(), ops.ops.size());
  EXPECT_GE(ops.ops.size(), 9U) << "two passes of three kinds of module, one of them in two ways, updates, norms";
  expect_sound(ops.learnt);
}

TEST(ScenarioOps, AProfileThatHasThemPredictsByThem) {
  Scenario scenario = small_gpt("resident");
  const ScenarioOps ops = time_scenario_ops(scenario, quick());
  const HardwareProfile base = load_profile(source_path("hardware_profiles/cpu_2_cores.yaml"));
  scenario.machine = parse_profile(with_ops(base, with_learnt(nullptr, ops.learnt), "mine"), "mine.yaml");
  const CostModel estimate(scenario.machine);
  Graph graph;
  find_workload(scenario.workload.family)->make(scenario, {}, 0)->prologue(graph);
  std::size_t found = 0;
  for (WorkId id = 0; id < graph.work_count(); ++id) {
    const auto row = ops.learnt.find(op_key(graph.work(id), Engine::Compute));
    if (row == ops.learnt.end()) continue;
    ++found;
    EXPECT_EQ(estimate.run_ns(graph, id, Engine::Compute), row->second.op.afresh.median_ns) << graph.work(id).body;
  }
  EXPECT_GE(found, 8U);
}

TEST(ScenarioOps, WhatItsOwnPolicyRunsOnTheCpuIsMeasuredThere) {
  Scenario scenario = small_gpt("zero_offload");
  scenario.policy.options[std::string(kCpuModules)] = "head";
  const ScenarioOps ops = time_scenario_ops(scenario, quick());
  bool module = false, update = false;
  for (const auto& [key, op] : ops.learnt) {
    module |= key.on_cpu && key.body == "gpt.head.forward";
    update |= key.on_cpu && key.body.starts_with("optimizer.");
  }
  EXPECT_TRUE(module) << names(ops.missing());
  EXPECT_TRUE(update || !ops.missing().empty()) << "beside copies all the time it is not measured, and said so";
  expect_sound(ops.learnt);
}

TEST(ScenarioOps, FewerBlocksHaveTheSameOps) {
  // 24 blocks do not fit in 8 MiB, two do.
  const Scenario scenario = small_gpt("on_demand", 8 * kMiB, 24);
  Scenario resident = scenario;
  resident.policy.name = "resident";
  EXPECT_FALSE(dry_run(resident, 3).fits) << "the test is about nothing";
  std::string told;
  ScenarioOpsOptions options = quick();
  options.tell = [&](const std::string& line) { told += line + "\n"; };
  const ScenarioOps ops = time_scenario_ops(scenario, options);
  EXPECT_NE(told.find("policy resident: "), std::string::npos) << told;
  EXPECT_EQ(names(ops.missing()), "");
}

TEST(ScenarioOps, WhatFitsUnderNoPolicyIsRefused) {
  EXPECT_THROW(time_scenario_ops(small_gpt("on_demand", kMiB / 8), quick()), DoesNotFit);
}

TEST(ScenarioOps, SeveralRanksAreRefused) {
  Scenario scenario = small_gpt("resident");
  scenario.workload.devices = 2;
  EXPECT_THROW(time_scenario_ops(scenario, quick()), ConfigError);
}

TEST(ScenarioOps, ADevicesOpsAreTimedBothWaysWithTheirLaunches) {
  ScenarioOpsOptions options = quick();
  options.device = std::make_shared<testing::ThreadDevice>();
  options.library = &host_library;
  const ScenarioOps ops = time_scenario_ops(small_gpt("resident"), options);
  EXPECT_EQ(names(ops.missing()), "");
  int both = 0;
  for (const auto& [key, op] : ops.learnt) {
    EXPECT_GT(op.op.afresh.samples, 0) << key.body;
    EXPECT_GT(op.op.dispatch_ns, 0) << key.body;
    both += op.op.repeated.samples > 0 && op.op.repeat_ns > 0 && op.op.record_ns > 0;
  }
  EXPECT_GE(both, 4) << "passes of blocks and head, at least, are recorded";
}

}  // namespace
}  // namespace tandem
