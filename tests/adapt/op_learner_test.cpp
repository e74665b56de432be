// What a run tells of its ops: of events written by hand, and of simulated runs, whose truth has to come back.
#include "adapt/op_learner.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "adapt/profile_ops.hpp"
#include "analysis/analysis.hpp"
#include "core/run/load.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// One op a step on the compute lane, with what runs beside it.
class HandWritten {
 public:
  explicit HandWritten(HardwareProfile profile = {}, OpLearner::Options options = {})
      : profile_(std::move(profile)), learner_(none_, graph_, profile_, std::move(options)) {
    Kernel kernel;
    kernel.kind = KernelKind::Gemm;
    kernel.flops = 1;
    work_ = graph_.add_work({"test.forward", DType::F32, {}, {kernel}});
  }

  // The op of the next step takes `ns` from `at_ns` on.
  void run(std::int64_t at_ns, std::int64_t ns, Engine lane = Engine::Compute, std::int64_t part = 0,
           std::int64_t whole = 0) {
    Op op;
    op.work = work_;
    op.step = step_++;
    op.engine = Engine::Compute;
    op.engines = engine_bit(Engine::Compute) | engine_bit(Engine::CpuOptimizer);
    op.label = graph_.intern("op");
    if (whole > 0) {
      op.divisible = true;
      Tensor tensor;
      tensor.name = "out" + std::to_string(step_);
      tensor.bytes = whole;
      op.writes.push_back({graph_.new_version(graph_.add_tensor(tensor)), kNone});
    }
    Command command;
    command.kind = CommandKind::Run;
    command.op = graph_.append(op);
    command.lane = {0, lane};
    command.part.bytes = part;
    finish(command, at_ns, ns);
  }
  void copy(std::int64_t at_ns, std::int64_t ns) {
    Command command;
    command.kind = CommandKind::Copy;
    command.lane = {0, Engine::H2D};
    finish(command, at_ns, ns);
  }
  OpLearner& learner() { return learner_; }
  const LearntOp* learnt(Engine lane = Engine::Compute) {
    ops_ = learner_.learnt();
    const auto found = ops_.find(op_key(graph_.work(work_), lane));
    return found == ops_.end() ? nullptr : &found->second;
  }

 private:
  void finish(Command command, std::int64_t at_ns, std::int64_t ns) {
    command.id = next_++;
    learner_.append(std::span<const Command>(&command, 1));
    EventBatch batch;
    Event& event = batch.events.emplace_back();
    event.command = command.id;
    event.started = {at_ns};
    event.finished = {at_ns + ns};
    learner_.append(batch);
  }

  NoLog none_;
  Graph graph_;
  HardwareProfile profile_;
  OpLearner learner_;
  WorkId work_ = kNone;
  CommandId next_ = 0;
  std::int32_t step_ = 0;
  LearntOps ops_;
};

TEST(OpLearner, CountsNeitherTheFirstTwoStepsNorTheLastTwo) {
  HandWritten h;
  std::int64_t at = 0;
  for (const std::int64_t ns : {900, 800, 100, 110, 120, 500, 600}) h.run(at += 1000, ns);
  ASSERT_NE(h.learnt(), nullptr);
  EXPECT_EQ(h.learnt()->op.afresh, (MeasuredTime{110, 102, 118, 3}));
  EXPECT_TRUE(h.learnt()->alone);
  EXPECT_EQ(h.learner().steps(), 3);
  EXPECT_EQ(h.learnt()->op.repeated.samples, 0);
}

TEST(OpLearner, KnowsWhenEnoughIsKnown) {
  HandWritten h;
  std::int64_t at = 0;
  for (int i = 0; i < 6; ++i) h.run(at += 1000, 100);
  EXPECT_TRUE(h.learner().is_settled(0.01, 2));
  EXPECT_FALSE(h.learner().is_settled(0.01, 3)) << "two of six steps count";
  for (const std::int64_t ns : {50, 150, 60, 140}) h.run(at += 1000, ns);
  EXPECT_FALSE(h.learner().is_settled(0.01, 3)) << "they differ";
}

// While copies are busy, ops take 1.5 times as long.
HardwareProfile slowed() {
  HardwareProfile profile;
  profile.gpu = true;
  profile.interference[{Engine::Compute, Engine::H2D}] = 1.5;
  return profile;
}

TEST(OpLearner, TakesOffWhatCopiesBesideAdd) {
  HandWritten h(slowed());
  for (std::int64_t at = 1000; at <= 8000; at += 1000) {
    h.copy(at - 20, 120);  // beside 100 of 140 ns, in which 67 ns of the op are done
    h.run(at, 140);
  }
  ASSERT_NE(h.learnt(), nullptr);
  EXPECT_EQ(h.learnt()->op.afresh.median_ns, 107);
  EXPECT_FALSE(h.learnt()->alone);
}

TEST(OpLearner, PrefersWhatRanAlone) {
  HandWritten h(slowed());
  for (int step = 0; step < 20; ++step) {
    const std::int64_t at = 1000 * step;
    if (step % 2 == 0) h.copy(at, 500);
    h.run(at, step % 2 == 0 ? 149 : 100);
  }
  EXPECT_EQ(h.learnt()->op.afresh, (MeasuredTime{100, 100, 100, 8}));
  EXPECT_TRUE(h.learnt()->alone);
}

TEST(OpLearner, SeesCopiesThatEndLater) {
  HandWritten h(slowed());
  for (std::int64_t at = 0; at < 8000; at += 1000) {
    h.run(at, 150);
    h.copy(at - 10, 400);  // its event comes after the op's
  }
  EXPECT_EQ(h.learnt()->op.afresh.median_ns, 100);
}

TEST(OpLearner, LeavesOutWhatTheCpuDoesBesideCopies) {
  HandWritten beside, alone;
  for (HandWritten* h : {&beside, &alone})
    for (std::int64_t at = 0; at < 8000; at += 1000) {
      if (h == &beside) h->copy(at, 100);
      h->run(at, 1);  // what steps are counted by
      h->run(at, 100, Engine::CpuOptimizer);
    }
  EXPECT_EQ(beside.learnt(Engine::CpuOptimizer), nullptr);
  ASSERT_NE(alone.learnt(Engine::CpuOptimizer), nullptr);
  EXPECT_EQ(alone.learnt(Engine::CpuOptimizer)->op.afresh.median_ns, 100);
}

TEST(OpLearner, LeavesOutParts) {
  HandWritten parts, whole;
  for (std::int64_t at = 0; at < 8000; at += 1000) {
    parts.run(at, 100, Engine::Compute, 64, 128);
    whole.run(at, 100, Engine::Compute, 128, 128);
  }
  EXPECT_EQ(parts.learnt(), nullptr);
  EXPECT_NE(whole.learnt(), nullptr);
}

TEST(OpLearner, TellsRecordedLaunchesApart) {
  OpLearner::Options options;
  options.records = [](const Work&) { return true; };
  options.notes_launches = true;
  options.source = "test";
  HandWritten h(HardwareProfile{}, options);
  // The same command again and again: once most do, one is recorded, which takes longer, and those after it repeat it.
  RepeatedRuns book;
  std::vector<OpLaunch> launches;
  Command same;
  for (std::int64_t at = 0; at < 100'000; at += 1000) {
    const RepeatedRuns::Launch launch = book.next(0, same).launch;
    const bool recorded = launch == RepeatedRuns::Launch::Recorded, repeated = launch == RepeatedRuns::Launch::Repeated;
    h.run(at, recorded ? 900 : repeated ? 80 : 100);
    launches.push_back({recorded ? 30.0 : repeated ? 7.0 : 20.0, recorded, repeated});
  }
  h.learner().add_launches(launches);
  const MeasuredOp op = h.learnt()->op;
  EXPECT_EQ(op.afresh.p90_ns, 100);
  EXPECT_EQ(op.repeated.p90_ns, 80);
  EXPECT_EQ(op.afresh.samples + op.repeated.samples, 100 - 4 - 1);
  EXPECT_GT(op.repeated.samples, op.afresh.samples);
  EXPECT_EQ(op.dispatch_ns, 20);
  EXPECT_EQ(op.repeat_ns, 7);
  EXPECT_EQ(op.record_ns, 30);
  EXPECT_EQ(op.source, "test");
}

TEST(OpLearner, TakesOffALoweredClock) {
  HardwareProfile profile;
  profile.gpu = true;
  profile.peak_flops[DType::F32] = 1e9;  // one flop a ns: the op's product takes 1 ns at its peak
  profile.power = {1.5, 1.5, 0.4, 0.2, 10'000};
  HandWritten h(profile);
  DeviceClock clock({profile.power});
  const CostModel::Activity products{1, 1, 0};
  std::int64_t at = 0;
  double stretched = 0;
  for (int i = 0; i < 200; ++i) {
    const double stretch = clock.stretch(static_cast<double>(at));
    stretched = std::max(stretched, stretch);
    const auto ns = std::llround(10'000 * stretch);
    clock.ran(static_cast<double>(at + ns), products);
    h.run(at, ns);
    at += ns;
  }
  EXPECT_GT(stretched, 1.1) << "the test is about nothing";
  EXPECT_NEAR(static_cast<double>(h.learnt()->op.afresh.median_ns), 10'000, 10);
}

// Simulated runs: what was learnt of one is what its truth takes.
Scenario offloaded(const std::string& policy) {
  Scenario s = testing::gpt_scenario(policy, (policy == "resident" ? 256 : 64) * kMiB);
  s.workload.keys["hidden"] = 512;
  s.workload.precision = DType::BF16;
  s.machine.interference[{Engine::Compute, Engine::H2D}] = 1.2;
  s.machine.interference[{Engine::Compute, Engine::D2H}] = 1.1;
  s.steps = 8;
  return s;
}

LearntOps learn(const Scenario& scenario) {
  Simulation simulation(scenario);
  NoLog none;
  OpLearner learner(none, simulation.graph(), scenario.machine, {});
  simulation.run(&learner);
  return learner.learnt();
}

double simulated_s(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  const RunRecord record = simulation.record();
  return analyse(record).step_s.median;
}

TEST(OpLearnerOfSimulatedRuns, FindsTheTruth) {
  for (const char* policy : {"resident", "zero_offload", "on_demand"}) {
    const Scenario scenario = offloaded(policy);
    const LearntOps learnt = learn(scenario);
    Simulation again(scenario);
    again.run();
    const CostModel truth(scenario.machine);
    std::size_t found = 0;
    for (WorkId id = 0; id < again.graph().work_count(); ++id) {
      const auto op = learnt.find(op_key(again.graph().work(id), Engine::Compute));
      if (op == learnt.end()) continue;
      ++found;
      const auto expected = static_cast<double>(truth.run_ns(again.graph(), id, Engine::Compute));
      EXPECT_NEAR(static_cast<double>(op->second.op.afresh.median_ns), expected, std::max(2.0, 0.01 * expected))
          << policy << ": " << again.graph().work(id).body << (op->second.alone ? " alone" : " beside copies");
    }
    EXPECT_GE(found, 6U) << policy;
  }
}

TEST(OpLearnerOfSimulatedRuns, MakesAWrongModelPredictTheRun) {
  const Scenario real = offloaded("resident");
  Scenario wrong = real;
  for (auto& [type, flops] : wrong.machine.peak_flops) flops /= 3;
  EXPECT_GT(simulated_s(wrong), 1.1 * simulated_s(real)) << "the test is about nothing";
  wrong.machine.ops = std::make_shared<const MeasuredOps>(with_learnt(nullptr, learn(real)));
  EXPECT_NEAR(simulated_s(wrong) / simulated_s(real), 1, 1e-3);
}

OpKey key(const char* body) { return {body, DType::F32, {1, 2}, 3, false}; }
LearntOp learnt_op(std::int64_t ns, bool alone) { return {{{ns, ns, ns, 5}, {}, 0, 0, 0, "new"}, alone}; }

TEST(ProfileOps, LaterTimesReplaceFormerOnesUnlessCopiesWereBeside) {
  MeasuredOps known;
  known.rows[key("a")] = known.rows[key("b")] = {{100, 90, 110, 9}, {80, 80, 80, 9}, 7, 8, 9, "old"};
  const MeasuredOps merged = with_learnt(
      &known, {{key("a"), learnt_op(50, true)}, {key("b"), learnt_op(50, false)}, {key("c"), learnt_op(50, false)}});
  EXPECT_EQ(merged.rows.at(key("a")), (MeasuredOp{{50, 50, 50, 5}, {80, 80, 80, 9}, 7, 8, 9, "new"}));
  EXPECT_EQ(merged.rows.at(key("b")), known.rows.at(key("b")));
  EXPECT_EQ(merged.rows.at(key("c")).afresh.median_ns, 50);
}

TEST(ProfileOps, AProfileReadsBackWithItsRowsAndAllElseAsItWas) {
  const HardwareProfile base = load_profile(source_path("hardware_profiles/cpu_2_cores.yaml"));
  MeasuredOps ops;
  ops.rows[key("gpt.block.forward")] = {{100, 90, 110, 9}, {80, 79, 81, 3}, 7, 8, 9, "tandem calibrate --for"};
  ops.rows[{"imported.my-module.backward", DType::BF16, {}, ~0ULL, true}] = {{5, 5, 5, 1}, {}, 0, 0, 0, "test"};
  const HardwareProfile with = parse_profile(with_ops(base, ops, "mine"), "mine.yaml");
  ASSERT_NE(with.ops, nullptr);
  EXPECT_EQ(with.ops->rows, ops.rows);
  EXPECT_EQ(with.name, "mine");
  // And again, with other rows: none are left of before.
  const HardwareProfile without = parse_profile(with_ops(with, {}, base.name), "mine.yaml");
  EXPECT_EQ(without.ops, nullptr);
  EXPECT_EQ(without.text, base.text);
}

TEST(ProfileOps, MoreRowsThanAProfileHoldsAreRefused) {
  const HardwareProfile base = load_profile(source_path("hardware_profiles/cpu_2_cores.yaml"));
  MeasuredOps ops;
  for (std::size_t i = 0; i <= kMostMeasuredOps; ++i)
    ops.rows[{"body", DType::F32, {static_cast<std::int64_t>(i)}, 0, false}] = {{5, 5, 5, 1}, {}, 0, 0, 0, "test"};
  EXPECT_THROW(with_ops(base, ops, ""), ConfigError);
  ops.rows.erase(ops.rows.begin());
  EXPECT_EQ(parse_profile(with_ops(base, ops, ""), "p.yaml").ops->rows.size(), kMostMeasuredOps) << "those it holds";
}

}  // namespace
}  // namespace tandem
