// A run of any length takes bounded memory, and its reports still tell all of it.
#include <gtest/gtest.h>
#include <malloc.h>

#include "analysis/analysis.hpp"
#include "analysis/run_log.hpp"
#include "core/base/errors.hpp"
#include "core/base/forgetting_vector.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/null_executor.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

Scenario long_scenario(const std::string& policy, std::int32_t steps) {
  Scenario scenario = testing::gpt_scenario(policy, 80 << 10, /*layers=*/2);
  scenario.workload.keys["hidden"] = 16;
  scenario.workload.keys["heads"] = 2;
  scenario.workload.keys["vocabulary"] = 64;
  scenario.workload.keys["sequence"] = 8;
  scenario.workload.micro_batches = 2;
  scenario.optimizer.clip_norm = 1;
  if (policy == "resident" || policy == "ssdtrain" || policy == "lsp_offload")
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = 1 << 20;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 16 << 20;
  scenario.validation.every = 100;
  scenario.validation.batches = 1;
  scenario.steps = steps;
  return scenario;
}

// What the process has allocated, read as a step ends.
class MemoryWatch final : public EventLog {
 public:
  MemoryWatch(const Graph& graph, std::int32_t from, std::int32_t to)
      : follower_(graph, [=, this](std::int32_t step, const StepFigures&) {
          if (step == from) before_ = allocated();
          if (step == to) after_ = allocated();
        }) {}
  void append(const EventBatch& batch) override { follower_.append(batch); }
  void append(std::span<const Command> commands) override { follower_.append(commands); }
  std::int64_t growth() const { return after_ - before_; }

 private:
  static std::int64_t allocated() {
    const auto info = mallinfo2();
    return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
  }
  StepFollower follower_;
  std::int64_t before_ = 0, after_ = 0;
};

struct LongRunning {
  explicit LongRunning(const Scenario& s)
      : scenario(s),
        estimate(scenario.machine),
        scheduler(make_scheduler(scenario, estimate)),
        log({&scheduler->graph()}, scenario, std::nullopt, [this] { scheduler->forget_what_is_over(); }) {}
  void drive(EventLog& watch) {
    NullExecutor executor({.result = [](const Command& command) { return std::int64_t{command.op}; }});
    TeeLog both(log, &watch);
    Scheduler* ranks[] = {scheduler.get()};
    tandem::drive(ranks, executor, both);
    EXPECT_EQ(scheduler->failure(), "");
  }
  RunRecord record(const char* mode) const {
    RunRecord record;
    record.mode = mode;
    record.scenario = &scenario;
    record.ranks.emplace_back();
    log.describe(record);
    return record;
  }

  Scenario scenario;
  CostModel estimate;
  std::unique_ptr<Scheduler> scheduler;
  RunLog log;
};

class LongRun : public ::testing::TestWithParam<std::string> {};

TEST_P(LongRun, TakesNoMoreMemoryWithEveryStep) {
  constexpr std::int32_t kFrom = testing::kSanitized ? 350 : 500, kTo = testing::kSanitized ? 450 : 1500;
  LongRunning run(long_scenario(GetParam(), kTo + 10));
  MemoryWatch watch(run.scheduler->graph(), kFrom, kTo);
  run.drive(watch);
  // Steps differ by what is under way as they end. A byte a command would be 60 kB.
  EXPECT_LT(watch.growth(), 40'000) << "over " << kTo - kFrom << " steps";
  EXPECT_LT(run.scheduler->graph().held(), 6000U);
}

std::vector<std::string> all_policies() {
  std::vector<std::string> all = testing::exact_policies();
  for (const std::string& name : testing::approximate_policies()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Policies, LongRun, ::testing::ValuesIn(all_policies()),
                         [](const auto& policy) { return policy.param; });

// Of the same run, kept whole.
TEST(LongRunReport, TellsOfAllSteps) {
  const Scenario scenario = long_scenario("on_demand", 600);
  LongRunning run(scenario);
  MemoryLog whole;
  run.drive(whole);
  const RunRecord of_cut = run.record("measured");
  const Analysis cut = analyse(of_cut);

  Scenario same = scenario;  // forgets nothing
  const CostModel estimate(same.machine);
  const auto scheduler = make_scheduler(same, estimate);
  NullExecutor executor({.result = [](const Command& command) { return std::int64_t{command.op}; }});
  MemoryLog log;
  Scheduler* ranks[] = {scheduler.get()};
  drive(ranks, executor, log);
  RunRecord record;
  record.mode = "measured";
  record.scenario = &same;
  record.ranks.push_back({.graph = &scheduler->graph()});
  record.log = &log;
  const Analysis all = analyse(record);

  EXPECT_EQ(cut.record->totals != nullptr, true);
  EXPECT_LT(cut.steps.ends_ns.size(), 300U);
  EXPECT_EQ(cut.run.steps, 600);
  EXPECT_EQ(cut.run.times_ns, all.run.times_ns);
  EXPECT_EQ(cut.run.commands, all.run.commands);
  EXPECT_EQ(cut.run.makespan_ns, all.run.makespan_ns);
  EXPECT_EQ(cut.run.head_ns, all.run.head_ns);
  EXPECT_EQ(cut.run.tail_ns, all.run.tail_ns);
  EXPECT_EQ(cut.loss, all.loss);
  EXPECT_EQ(cut.gradient_norm, all.gradient_norm);
  EXPECT_EQ(cut.skipped_steps, all.skipped_steps);
  ASSERT_EQ(cut.validation_loss.size(), all.validation_loss.size());
  ASSERT_FALSE(cut.validation_loss.empty());
  EXPECT_EQ(cut.validation_loss.back().step, all.validation_loss.back().step);
  EXPECT_EQ(cut.step_s.median, all.step_s.median);
  ASSERT_EQ(cut.lanes.size(), all.lanes.size());
  for (std::size_t i = 0; i < cut.lanes.size(); ++i) {
    EXPECT_EQ(cut.lanes[i].use.bytes, all.lanes[i].use.bytes) << name_of(cut.lanes[i].lane);
    EXPECT_EQ(cut.lanes[i].use.commands, all.lanes[i].use.commands) << name_of(cut.lanes[i].lane);
  }
  // The commands are the same: what is forgotten is asked for no more.
  ASSERT_EQ(whole.entries().size(), log.entries().size());
  for (std::size_t i = 0; i < log.entries().size(); ++i)
    ASSERT_EQ(whole.entries()[i].commands, log.entries()[i].commands) << i;
}

TEST(LongRunReport, AShortRunIsKeptWhole) {
  LongRunning run(long_scenario("resident", RunLog::kDetailedSteps));
  NoLog none;
  run.drive(none);
  const RunRecord record = run.record("measured");
  EXPECT_EQ(record.totals, nullptr);
  EXPECT_EQ(analyse(record).steps.ends_ns.size(), static_cast<std::size_t>(RunLog::kDetailedSteps));
}

TEST(LongRunLimits, ARunThatHasNoNumbersForItsOpsIsRefusedBeforeItBegins) {
  Scenario scenario = long_scenario("on_demand", 1'000'000);
  scenario.workload.keys["layers"] = 10'000;
  const CostModel estimate(scenario.machine);
  EXPECT_THROW(make_scheduler(scenario, estimate), ConfigError);
  scenario.first_step = 999'000;  // resumed: it counts from there
  EXPECT_NO_THROW(make_scheduler(scenario, estimate));
}

TEST(ForgettingVector, GivesBackWhatIsForgottenAndKeepsTheRest) {
  constexpr std::size_t kMany = 40'000;
  ForgettingVector<std::string> names;
  for (std::size_t i = 0; i < kMany; ++i) names.push_back(std::to_string(i));
  const std::string* first = &names[0];
  for (std::size_t i = 1; i < kMany; ++i) names.forget(i, "gone");
  EXPECT_EQ(&names[0], first);
  EXPECT_EQ(names[0], "0");
  EXPECT_EQ(names[1], "gone") << "a neighbour of what is kept";
  EXPECT_TRUE(names.is_gone(kMany / 2));
  EXPECT_FALSE(names.is_gone(0));
  EXPECT_EQ(names.held(), 2 * ForgettingVector<std::string>::kChunk) << "the first chunk, and the one that is not full";
  names.push_back("more");
  EXPECT_EQ(names[kMany], "more");
  EXPECT_EQ(names.size(), kMany + 1);
  const ForgettingVector<std::string> copy = names;
  EXPECT_EQ(copy[0], "0");
  EXPECT_TRUE(copy.is_gone(kMany / 2));
}

}  // namespace
}  // namespace tandem
