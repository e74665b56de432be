// Small questions answered twice: the pick beside the best of all candidates, each of which is simulated. What is
// written reads back to the same step.
#include <gtest/gtest.h>

#include <cstdlib>

#include "analysis/analysis.hpp"
#include "core/run/load.hpp"
#include "plan/answer.hpp"
#include "plan/search.hpp"
#include "sim/simulate.hpp"
#include "tests/common/sanitized.hpp"

namespace tandem::testing {
namespace {

struct Planned {
  Question question;
  Space space = space_of(question);
  Found found;

  explicit Planned(const PlanFlags& flags, const Effort& effort, std::size_t cores = 2) : question(flags) {
    const Candidates candidates(question, cores, 300'000);
    const Oracle oracle{[&](const auto& of) { return candidates.bounds(of); },
                        [&](const auto& of, double best_s) { return candidates.runs(of, best_s); }};
    found = search(space, samples_per_step(question.base().workload), oracle, effort);
  }
  double picked() const { return found.tried[pick(found)].run.samples_per_s; }
  double fastest() const { return found.tried[found.ranked().front()].run.samples_per_s; }
};

const Effort kEnough{.work = 2'000'000}, kAll{.exhaustive = true};
// As the program has it, with more where there are strategies to search.
Effort enough_for(const PlanFlags& flags) { return flags.devices > 1 ? Effort{.work = 4'000'000} : kEnough; }

// Of a small GPT, or of two of GPT-2's layers where the device is a GPU, whose libraries want memory of their own.
PlanFlags question(const std::string& machine, const std::string& device, const std::vector<std::string>& more,
                   std::int64_t samples, bool exact = true) {
  PlanFlags flags;
  flags.machine = machine;
  flags.device_memory = device;
  flags.host_memory = "2GiB";
  flags.samples = samples;
  flags.exact = exact;
  flags.overrides = {"limits.disk_bytes=0B", "workload.linear_tiles=1", "workload.precision=fp32"};
  if (machine == "round_numbers") {
    flags.overrides.insert(flags.overrides.end(), {"workload.family=gpt", "workload.vocabulary=512",
                                                   "workload.sequence=64", "workload.heads=4"});
  } else {
    flags.model = "gpt2";
    flags.overrides.insert(flags.overrides.end(), {"workload.layers=2", "workload.sequence=128"});
  }
  flags.overrides.insert(flags.overrides.end(), more.begin(), more.end());
  return flags;
}

const std::vector<std::string> kWide = {"workload.layers=3", "workload.hidden=256"},
                               kNarrow = {"workload.layers=4", "workload.hidden=128"};

// Under a sanitizer the first one, which runs the code of all. Every other one but at night: each simulates all that
// there is.
std::vector<PlanFlags> some_of(const std::vector<PlanFlags>& questions) {
  if (kSanitized) return {questions.front()};
  std::vector<PlanFlags> some;
  for (std::size_t i = 0; i < questions.size(); i += std::getenv("TANDEM_NIGHTLY") != nullptr ? 1 : 2)
    some.push_back(questions[i]);
  return some;
}

class SmallPlans : public ::testing::TestWithParam<PlanFlags> {};

TEST_P(SmallPlans, ComeWithinTwoPercentOfTheBest) {
  const Planned plan(GetParam(), enough_for(GetParam())), all(GetParam(), kAll);
  ASSERT_FALSE(all.found.ranked().empty()) << "something fits";
  ASSERT_FALSE(plan.found.ranked().empty());
  EXPECT_GT(plan.picked(), 0.98 * all.fastest());
  constexpr std::size_t kFew = 20;  // may all be worth a try
  if (all.found.counts.all > kFew) {
    EXPECT_LT(plan.found.counts.simulated, all.found.counts.simulated);
  }
}

INSTANTIATE_TEST_SUITE_P(Questions, SmallPlans,
                         ::testing::ValuesIn(some_of({question("round_numbers", "4MiB", kNarrow, 4),
                                                      question("round_numbers", "10MiB", kWide, 2),
                                                      question("round_numbers", "3MiB", kNarrow, 2, /*exact=*/false),
                                                      question("titan_rtx", "640MiB", {"workload.loss_tiles=1"}, 4),
                                                      question("gtx_1650", "512MiB", {"workload.loss_tiles=8"}, 4)})),
                         [](const auto& made) { return std::to_string(made.index); });

// Of several devices: copies, stages and divided layers, each with what else is open.
PlanFlags shared(std::int64_t devices, const std::string& device, std::vector<std::string> more, bool exact = true) {
  more.insert(more.end(),
              {"workload.loss_tiles=1", "machine.collective.bandwidth=10GB/s", "machine.copies.peer.bandwidth=10GB/s"});
  PlanFlags flags = question("round_numbers", device, more, 4, exact);
  flags.devices = devices;
  return flags;
}
const std::vector<std::string> kOfFourDevices = {"workload.layers=3", "workload.hidden=256", "workload.partition=none",
                                                 "policy={name: zero_offload}"};

INSTANTIATE_TEST_SUITE_P(
    OfSeveralDevices, SmallPlans,
    ::testing::ValuesIn(
        some_of({shared(4, "64MiB", {"workload.layers=3", "workload.hidden=256", "policy={name: resident}"}),
                 shared(4, "12MiB", kOfFourDevices), shared(2, "4MiB", kNarrow), shared(2, "10MiB", kWide)})),
    [](const auto& made) { return std::to_string(made.index); });

TEST(PlanAnswers, DoNotDependOnTheCores) {
  const PlanFlags flags = question("round_numbers", "4MiB", kNarrow, 4);
  const Planned one(flags, {.work = 200'000}, 1), four(flags, {.work = 200'000}, 4);
  ASSERT_EQ(one.found.tried.size(), four.found.tried.size());
  for (std::size_t i = 0; i < one.found.tried.size(); ++i) {
    EXPECT_EQ(one.found.tried[i].point, four.found.tried[i].point);
    EXPECT_EQ(one.found.tried[i].run.step_s, four.found.tried[i].run.step_s);
  }
}

double step_of(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median;
}

TEST(PlanAnswers, AreScenariosThatTakeAsLong) {
  const Planned plan(question("round_numbers", "4MiB", kNarrow, 2), {.work = 200'000});
  const Answer answer = answer_of(plan.question, plan.space, plan.found, {});
  ASSERT_FALSE(answer.best.empty());
  EXPECT_DOUBLE_EQ(step_of(parse_scenario(answer.scenario, "planned.yaml")), answer.best.front().run.step_s);
}

// What stays on its devices is simulated by one rank of each stage; all of them take as long.
TEST(PlanAnswers, OfSeveralDevicesTakeAsLongUnfolded) {
  const Planned plan(shared(4, "64MiB",
                            {"workload.layers=3", "workload.hidden=256", "policy={name: resident}",
                             "workload.recompute=none", "workload.batch=1", "workload.micro_batches=1"}),
                     kAll);
  ASSERT_GE(plan.found.ranked().size(), 4u);
  for (const std::size_t i : plan.found.ranked()) {
    const Tried& tried = plan.found.tried[i];
    const Scenario scenario = plan.question.with(settings_of(plan.space, tried.point));
    EXPECT_FALSE(scenario.parallel.fold);
    EXPECT_NEAR(step_of(scenario), tried.run.step_s, 1e-6 * tried.run.step_s) << words_of(plan.space, tried.point);
  }
}

// Without room for its states a question has no candidate; with little room it says how much is enough, as a run did.
TEST(PlanAnswers, SayHowMuchWouldBeEnough) {
  const Planned plan(question("round_numbers", "1MiB", kNarrow, 1), kEnough);
  ASSERT_TRUE(plan.found.ranked().empty());
  const Candidates candidates(plan.question, 2, 300'000);
  const Answer answer =
      answer_of(plan.question, plan.space, plan.found, [&](const auto& refused) { return candidates.enough(refused); });
  ASSERT_TRUE(answer.nearest.has_value()) << verdict(answer);
  ASSERT_TRUE(answer.enough.found) << verdict(answer);
  std::vector<std::string> settings = answer.nearest->settings;
  const auto bytes = [&](Tier tier) { return answer.enough.bytes[static_cast<std::size_t>(tier)]; };
  for (const auto& [tier, key] :
       {std::pair(Tier::Device, "limits.device_bytes"), {Tier::HostPinned, "limits.host_bytes"}})
    if (bytes(tier) > 0) settings.push_back(std::string(key) + "=" + std::to_string(bytes(tier)) + "B");
  const Scenario scenario = plan.question.with(settings);
  Simulation simulation(scenario);
  EXPECT_NO_THROW(simulation.run());
}

}  // namespace
}  // namespace tandem::testing
