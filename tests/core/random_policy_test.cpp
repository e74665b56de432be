// A policy can be slow, never wrong: random decisions over random scenarios still keep capacity, order and contents.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/base/errors.hpp"
#include "core/transforms/delayed_update.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

// Decides by a seeded generator; whatever it asks for, the compute program and the optimizer steps go on.
class RandomPolicy final : public Policy {
 public:
  RandomPolicy(std::uint64_t seed, bool delayed, bool disk) : random_(seed), delayed_(delayed), disk_(disk) {}

  PolicyTraits traits() const override { return {.rewrites = delayed_ ? Rewrites{delayed_update()} : Rewrites{}}; }

  Tier home(const View&, TensorId) override {
    if (disk_ && chance(3)) return Tier::Disk;
    return Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    const Graph& graph = view.graph();
    for (int i = 0; i < 6; ++i) meddle(view, decisions, static_cast<ValueId>(random_() % graph.value_count()));
    if (!view.compute_program().empty() && chance(2)) decisions.run(view.compute_program().front());
    const auto ready = view.ready_optimizer_ops();
    if (!ready.empty() && chance(2)) update(view, decisions, ready[random_() % ready.size()]);
    // Never stuck: with nothing in flight, something must be issued.
    if (view.queued(Engine::Compute) + view.queued(Engine::CpuOptimizer) > 0) return;
    if (!view.compute_program().empty() && decisions.run(view.compute_program().front()) == Reply::Issued) return;
    if (!view.ready_optimizer_ops().empty()) update(view, decisions, view.ready_optimizer_ops().front());
  }

 private:
  bool chance(int of) { return random_() % static_cast<unsigned>(of) == 0; }

  void meddle(const View& view, Decisions& decisions, ValueId value) {
    const Tier tiers[] = {Tier::Device, Tier::HostPinned, Tier::Disk};
    const Tier tier = tiers[random_() % (disk_ ? 3 : 2)];
    const std::int64_t bytes = view.graph().value(value).bytes;
    if (view.graph().tensor_of(value).role == Role::Scalar) return;
    switch (random_() % 4) {
      case 0:
        decisions.copy(value, tier);
        break;
      case 1:
        decisions.release(value, tier);
        break;
      case 2:
        decisions.keep(value, tier);
        break;
      default:
        if (bytes >= 8192) decisions.copy_part(value, 4096, bytes / 2 / 4096 * 4096, tier);
    }
  }

  void update(const View& view, Decisions& decisions, OpId op) {
    const std::int64_t bytes = view.graph().value(view.graph().op(op).writes.front().value).bytes;
    const Engine engine = chance(2) ? Engine::Compute : Engine::CpuOptimizer;
    if (!divided_.count(op) && bytes > 8192 && chance(2)) {
      divided_.insert(op);
      const std::int64_t first = bytes / 3 / 4096 * 4096;
      if (first > 0) decisions.run_part(op, first, 4096, engine);
      return;
    }
    decisions.run(op, engine);
  }

  std::mt19937_64 random_;
  bool delayed_, disk_;
  std::set<OpId> divided_;
};

// Passes on what another executor says, with an interrupt at one of its turns.
class Interrupting final : public Executor {
 public:
  Interrupting(Executor& inner, int turn) : inner_(inner), turns_left_(turn) {}
  void submit(std::span<const Command> commands) override { inner_.submit(commands); }
  bool in_flight() const override { return inner_.in_flight(); }
  EventBatch wait(TimeNs deadline) override {
    EventBatch batch = inner_.wait(deadline);
    if (turns_left_-- == 0) batch.inputs.emplace_back(Interrupt{});
    return batch;
  }

 private:
  Executor& inner_;
  int turns_left_;
};

// A run that saves ends with the save of the last step appended.
void expect_saved_last(const Graph& graph) {
  std::int32_t last_step = 0, last_commit = kNone;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    last_step = std::max(last_step, graph.op(id).step);
    if (graph.label(graph.op(id).label) == "checkpoint.commit") last_commit = graph.op(id).step;
  }
  EXPECT_EQ(last_commit, last_step);
}

// So many random graphs, machines and orders; more by night (make nightly).
int turns() {
  const char* asked = std::getenv("TANDEM_RANDOM_GRAPHS");
  return asked != nullptr ? std::atoi(asked) : 400;
}

TEST(RandomPolicy, KeepsCapacityOrderAndContents) {
  std::mt19937_64 random(11);
  const int most = turns();
  ASSERT_GE(most, 1);
  int fitted = 0, stopped = 0;
  std::string last;
  for (int turn = 0; turn < most; ++turn) {
    const bool disk = random() % 2, delayed = random() % 4 == 0;
    const std::int64_t device_bytes = (2 + static_cast<std::int64_t>(random() % 4)) << 20;
    Scenario scenario = testing::gpt_scenario("resident", device_bytes, 1 + static_cast<int>(random() % 4));
    scenario.machine = testing::round_machine(device_bytes, (disk ? 6 : 32) << 20, disk ? std::int64_t{1} << 30 : 0);
    scenario.workload.precision = random() % 2 ? DType::F32 : DType::BF16;
    scenario.workload.micro_batches = 1 + static_cast<std::int64_t>(random() % 3);
    scenario.workload.keys["tied_embedding"] = random() % 2 == 1;
    scenario.workload.recompute = random() % 2 ? "none" : "block";
    scenario.optimizer.clip_norm = random() % 2 ? 1.0 : 0.0;
    scenario.optimizer.state_bits = std::array{32, 8, 4}[random() % 3];
    // Delayed updates in any order are right only where all steps are known from the start: three.
    scenario.first_step = static_cast<std::int32_t>(random() % 3);
    scenario.steps = scenario.first_step + 3 + (delayed ? 0 : static_cast<std::int32_t>(random() % 3));
    if (random() % 2) scenario.checkpoint = {"anywhere", static_cast<std::int64_t>(random() % 3), 1};
    scenario.validation = {.every = static_cast<std::int32_t>(random() % 3), .batches = 2};
    const CostModel estimate(scenario.machine);
    auto policy = std::make_unique<RandomPolicy>(random(), delayed, disk);
    auto source = find_workload("gpt")->make(scenario, policy->traits().rewrites);
    Scheduler scheduler(scenario, estimate, std::move(source), std::move(policy));
    Contents contents(scheduler.graph());
    HappensBefore checker(scheduler.graph(), 0, &contents);
    NullExecutor::Options options;
    options.seed = 1 + random() % 1000;
    options.events_a_wait = 4;
    NullExecutor inner(options);
    Interrupting executor(inner, static_cast<int>(random() % 100));
    Scheduler* ranks[] = {&scheduler};
    try {
      drive(ranks, executor, checker);
      ++fitted;
      stopped += scheduler.stopped();
      if (!scenario.checkpoint.directory.empty()) expect_saved_last(scheduler.graph());
    } catch (const DoesNotFit& error) {
      last = error.what();
      // Small memories may not hold what random decisions ask for; what was issued must be right all the same.
    }
    ASSERT_EQ(checker.violation(), "") << "turn " << turn;
    ASSERT_EQ(contents.violation(), "") << "turn " << turn;
    for (Tier tier : {Tier::Device, Tier::HostPinned, Tier::Disk})
      ASSERT_LE(scheduler.pool(tier).peak_bytes(), scheduler.pool(tier).capacity_bytes());
  }
  EXPECT_GT(fitted, 200) << last;
  EXPECT_GT(stopped, 10);
}

}  // namespace
}  // namespace tandem
