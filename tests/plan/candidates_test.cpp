// What a candidate is tried by: a bound that no run of it is below, and processes that answer one question each.
#include "plan/candidates.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "analysis/analysis.hpp"
#include "core/workloads/workload.hpp"
#include "sim/forked.hpp"
#include "sim/simulate.hpp"

namespace tandem::testing {
namespace {

Question small() {
  PlanFlags flags;
  flags.machine = "titan_rtx";
  flags.model = "gpt2";
  flags.overrides = {"workload.layers=2", "workload.sequence=128", "workload.batch=2"};
  return Question(flags);
}

TEST(AnswersInForks, ComeInTheOrderOfTheQuestions) {
  for (const std::size_t at_a_time : {1, 3, 100}) {
    const auto answers = answer_in_forks(7, at_a_time, [](std::size_t i) { return std::string(100'000 * i, 'x'); });
    ASSERT_EQ(answers.size(), 7u);
    for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].size(), 100'000 * i);
  }
}

TEST(AnswersInForks, AreNoneOfWhatDied) {
  const auto answers = answer_in_forks(4, 2, [](std::size_t i) -> std::string {
    if (i == 1) std::raise(SIGKILL);
    if (i == 2) throw std::runtime_error("no");
    return "here";
  });
  EXPECT_EQ(answers, (std::vector<std::string>{"here", "", "", "here"}));
}

// The bound that is found before a run is the run's own.
TEST(CandidateBounds, AreThoseOfTheRun) {
  const Question question = small();
  const Settings settings{"policy={name: resident}"};
  const Scenario scenario = question.with(settings);
  Graph graph;
  const auto source = find_workload(scenario.workload.family)->make(scenario, {}, 0);
  source->prologue(graph);
  while (source->append_step(graph, 0)) continue;
  Simulation simulation(scenario);
  simulation.run();
  EXPECT_DOUBLE_EQ(lower_bound(graph, scenario).overall(), analyse(simulation.record()).bound.overall());
  const auto bounds = Candidates(question, 1, 300'000).bounds({settings});
  ASSERT_TRUE(bounds.front().allowed) << bounds.front().why_not;
  EXPECT_NEAR(bounds.front().step_s, lower_bound(graph, scenario).overall(), 1e-9) << "of two steps, as of four";
}

TEST(CandidateRuns, AreGivenUpWhereTheyAreSlow) {
  const Question question = small();
  const Candidates candidates(question, 1, 300'000);
  const std::vector<Settings> all{{"policy={name: zero_offload}"}};
  const CandidateRun whole = candidates.runs(all, 1e9).front(), slow = candidates.runs(all, 1e-6).front();
  ASSERT_EQ(whole.kind, CandidateRun::Kind::Ran) << whole.why_not;
  EXPECT_EQ(slow.kind, CandidateRun::Kind::Slow);
  EXPECT_LT(slow.commands, whole.commands);
  EXPECT_EQ(candidates.runs(all, whole.step_s / 2).front().step_s, whole.step_s) << "what is as fast runs to the end";
}

TEST(CandidateRuns, EndAtTheirCommands) {
  const Question question = small();
  const CandidateRun run = Candidates(question, 1, 10).runs({{"policy={name: resident}"}}, 1e9).front();
  EXPECT_EQ(run.kind, CandidateRun::Kind::GivenUp);
  EXPECT_NE(run.why_not.find("more than 10 commands"), std::string::npos) << run.why_not;
}

}  // namespace
}  // namespace tandem::testing
