// Steps whose sizes differ, and modules that may run on either processor: what the builder makes of them, run through
// the null executor with all checkers on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/step/network_plan.hpp"
#include "core/step/training_source.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/fp32_gradients.hpp"
#include "core/transforms/recompute/recompute.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/core/branches.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

using testing::branches;

// Runs forwards and backwards on the CPU wherever they may, every other time.
class OnBoth final : public Policy {
 public:
  void decide(const View& view, Decisions& decisions) override {
    while (view.queued(Engine::Compute) + view.queued(Engine::CpuCompute) < 4) {
      const auto program = view.compute_program();
      const auto updates = view.ready_optimizer_ops();
      if (program.empty() && updates.empty()) return;
      if (!updates.empty() && decisions.run(updates.front(), Engine::CpuOptimizer) == Reply::Issued) continue;
      const Op& op = view.graph().op(program.front());
      const bool on_cpu = op.may_run_on(Engine::CpuCompute) && turn_++ % 2 == 0;
      if (decisions.run(program.front(), on_cpu ? Engine::CpuCompute : op.engine) != Reply::Issued) return;
    }
  }

 private:
  int turn_ = 0;
};

Scenario small_run(std::int32_t steps) {
  Scenario s = small_scenario("mlp");
  s.machine = testing::round_machine(1 << 20);
  s.steps = steps;
  s.workload.micro_batches = 2;
  s.optimizer.clip_norm = 1;
  s.validation = {.every = 2, .batches = 1};
  return s;
}

struct CheckedRun {
  std::string violation;
  std::map<Engine, std::set<std::string>> labels;  // of the ops that ran on each
};

CheckedRun run_checked(const Scenario& scenario, std::unique_ptr<StepSource> source) {
  const CostModel estimate(scenario.machine);
  Scheduler scheduler(scenario, estimate, std::move(source), std::make_unique<OnBoth>());
  MemoryLog log;
  Contents contents(scheduler.graph(), 0, &log);
  HappensBefore checker(scheduler.graph(), 0, &contents);
  NullExecutor::Options options;
  options.seed = 7;
  NullExecutor executor(options);
  Scheduler* ranks[] = {&scheduler};
  drive(ranks, executor, checker);
  CheckedRun run{checker.violation() + contents.violation(), {}};
  for (const MemoryLog::Entry& entry : log.entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run)
        run.labels[command.lane.kind()].emplace(scheduler.graph().label(scheduler.graph().op(command.op).label));
  return run;
}

TEST(StepEngines, AModuleThatMayRunOnTheCpuHasPassesThatMay) {
  const Scenario s = small_run(3);
  const auto source = [&](bool on_cpu) {
    return std::make_unique<TrainingSource>(network_plan(branches({.branches_on_cpu = on_cpu}), s), s);
  };
  Graph graph;
  const auto made = source(true);
  made->prologue(graph);
  made->append_step(graph, 0);
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    const std::string label(graph.label(op.label));
    const bool pass = op.phase == Phase::Forward || op.phase == Phase::Backward || op.phase == Phase::Evaluate;
    const bool branch = label.starts_with("left.") || label.starts_with("right.");
    EXPECT_EQ(op.may_run_on(Engine::CpuCompute), pass && branch) << graph.op_name(id);
    if (pass) {
      EXPECT_EQ(op.engine, Engine::Compute) << "unless a policy says otherwise: " << label;
    }
  }

  const CheckedRun both = run_checked(s, source(true));
  EXPECT_EQ(both.violation, "");
  const std::set<std::string>& cpu = both.labels.at(Engine::CpuCompute);
  for (const std::string& label : cpu) EXPECT_TRUE(label.starts_with("left.") || label.starts_with("right.")) << label;
  for (const char* label : {"left.forward", "left.backward", "right.forward", "right.backward"})
    EXPECT_TRUE(cpu.contains(label) || both.labels.at(Engine::Compute).contains(label)) << label;
  EXPECT_GE(cpu.size(), 3u);

  const CheckedRun device = run_checked(s, source(false));
  EXPECT_EQ(device.violation, "");
  EXPECT_FALSE(device.labels.contains(Engine::CpuCompute));
}

// In 16 bits a GPU and a CPU need different workspaces: an op that may run on either declares enough for both.
TEST(StepEngines, WorkspaceIsEnoughForEitherProcessor) {
  const auto largest = [](bool gpu, bool on_cpu) {
    Scenario s = small_run(1);
    s.machine.gpu = gpu;
    Network network = [&] {
      NetworkBuilder n("small", DType::BF16);
      const Signal x = n.batch("inputs", Shape({64, 96}, DType::BF16));
      const Signal targets = n.batch("targets", Shape({64}, DType::I64), 10);
      n.module("head", "head", [&](ModuleScope& m) {
        const LocalId h = m.layer_norm("norm", m.linear("wide", m.in("input", x), 512), 1e-5);
        m.output(m.cross_entropy("loss", m.linear("output", h, 10), m.in("targets", targets)));
        if (on_cpu) m.allow_cpu();
      });
      return n.finish();
    }();
    std::vector<std::int64_t> bytes;
    const TrainingPlan plan = network_plan(network, s);
    for (const OpSpec& op : plan.ops) bytes.push_back(op.workspace_bytes);
    return bytes;
  };
  const auto gpu = largest(true, false), cpu = largest(false, false), either = largest(true, true);
  ASSERT_EQ(either.size(), gpu.size());
  ASSERT_EQ(either.size(), cpu.size());
  for (std::size_t i = 0; i < either.size(); ++i) EXPECT_GE(either[i], std::max(gpu[i], cpu[i])) << i;
}

TEST(StepGraph, SeveralInputsAndLossesThatShareAWeight) {
  const Scenario s = small_run(2);
  TrainingSource source(network_plan(testing::two_losses(), s), s);
  Graph graph;
  source.prologue(graph);
  source.append_step(graph, 0);
  std::string order, results;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != 0 || op.micro_batch != 0) continue;
    const std::string label(graph.label(op.label));
    if (op.phase == Phase::Forward || op.phase == Phase::Backward) order += label + " ";
    if (op.phase == Phase::Forward && op.has_result) results += label + " ";
  }
  EXPECT_EQ(order,
            "left.forward right.forward left_head.forward right_head.forward "
            "right_head.backward left_head.backward right.backward left.backward ");
  EXPECT_EQ(results, "left_head.forward right_head.forward ");
  const CheckedRun run = run_checked(s, std::make_unique<TrainingSource>(network_plan(testing::two_losses(), s), s));
  EXPECT_EQ(run.violation, "");
}

// Batches of 8, 4, 8, 2, 8, 4, ... samples, by the training step's number.
StepSizes batches_of_several_sizes(const Scenario& s) {
  return {.of_step =
              [](std::int64_t step) {
                return std::array<std::int64_t, 4>{8, 4, 8, 2}[step % 4];
              },
          .plan_of =
              [s](std::int64_t batch) {
                return network_plan(branches({.batch = batch, .type = s.workload.precision}), s);
              }};
}

TEST(StepSizes, WorksAndActivationsAreThoseOfTheStepAndParametersAreShared) {
  const Scenario s = small_run(8);
  TrainingSource source(batches_of_several_sizes(s), s);
  Graph graph;
  source.prologue(graph);
  std::vector<std::int32_t> works, tensors;
  while (source.append_step(graph, 0)) works.push_back(graph.work_count()), tensors.push_back(graph.tensor_count());
  ASSERT_EQ(works.size(), 8u);
  EXPECT_LT(works[0], works[1]);
  EXPECT_EQ(works[1], works[2]) << "8 samples again";
  EXPECT_LT(works[2], works[3]);
  EXPECT_EQ(works[3], works[7]) << "all three sizes are known";
  EXPECT_EQ(tensors[3], tensors[7]);

  const std::int64_t sizes[] = {8, 4, 8, 2};
  std::set<TensorId> parameters;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (graph.label(op.label) != "trunk.forward") continue;
    const std::int64_t batch = sizes[op.step % 4];
    EXPECT_EQ(graph.value(op.writes[0].value).bytes, batch * 32 * 4) << graph.op_name(id);
    EXPECT_EQ(graph.work(op.work).sizes[0], batch);
    parameters.insert(graph.value(op.reads[0]).tensor);
  }
  EXPECT_EQ(parameters.size(), 1u);
}

TEST(StepSizes, StepsOfOneSizeAreThoseOfTheirPlan) {
  const Scenario s = small_run(4);
  const auto steps = [&](auto&& plan) {
    TrainingSource source(plan, s);
    Graph graph;
    source.prologue(graph);
    while (source.append_step(graph, 0)) {
    }
    std::string text;
    for (OpId id = 0; id < graph.op_count(); ++id) {
      text += graph.op_name(id);
      for (const ValueId read : graph.op(id).reads) text += " " + graph.value_name(read);
      for (const Write& write : graph.op(id).writes) text += " > " + graph.value_name(write.value);
      text += "\n";
    }
    return text;
  };
  const StepSizes one{.of_step = [](std::int64_t) { return 4; },
                      .plan_of = [&](std::int64_t batch) { return network_plan(branches({.batch = batch}), s); }};
  EXPECT_EQ(steps(one), steps(network_plan(branches({.batch = 4}), s)));
}

TEST(StepSizes, TransformsRewriteEachPlanAndRunsAreSound) {
  Scenario s = small_run(8);
  s.workload.precision = DType::BF16;
  const Rewrites rewrites[] = {{}, {recompute_blocks({.offload = 1, .recompute = 2})}, {fp32_gradients()}};
  for (const Rewrites& asked : rewrites)
    for (const char* partition : {"none", "states", "parameters"}) {
      s.workload.devices = partition == std::string("none") ? 1 : 2;
      s.workload.partition = partition;
      if (s.workload.devices == 1) {
        EXPECT_EQ(
            run_checked(s, std::make_unique<TrainingSource>(batches_of_several_sizes(s), s, all_rewrites(s, asked)))
                .violation,
            "");
        continue;
      }
      TrainingSource source(batches_of_several_sizes(s), s, all_rewrites(s, asked), /*rank=*/1);
      Graph graph;
      source.prologue(graph);
      std::int32_t steps = 0;
      while (source.append_step(graph, 0)) ++steps;
      EXPECT_EQ(steps, 8);
    }
}

}  // namespace
}  // namespace tandem
