// Which ways of sharing a training a question leaves open, what they are called, and that a bound knows them.
#include "plan/strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "plan/bound.hpp"
#include "plan/space.hpp"
#include "sim/simulate.hpp"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A network of six modules, of four heads.
PlanFlags of_devices(std::int64_t devices, const std::vector<std::string>& more = {}) {
  PlanFlags flags;
  flags.machine = "round_numbers";
  flags.devices = devices;
  flags.samples = 8;
  flags.overrides = {"workload={family: gpt, layers: 4, hidden: 64, heads: 4, vocabulary: 256, sequence: 32}",
                     "machine.collective.bandwidth=10GB/s", "machine.copies.peer.bandwidth=10GB/s"};
  flags.overrides.insert(flags.overrides.end(), more.begin(), more.end());
  return flags;
}

std::vector<std::string> words(const PlanFlags& flags) {
  std::vector<std::string> all;
  for (const Strategy& strategy : strategies_of(Question(flags))) all.push_back(strategy.words());
  return all;
}

TEST(PlanStrategies, MultiplyToTheDevices) {
  EXPECT_THAT(words(of_devices(2)), ElementsAre("2 copies", "2 stages (1f1b)", "2 stages (gpipe)",
                                                "2 stages (interleaved)", "layers divided by 2"));
  EXPECT_THAT(words(of_devices(3)),
              ElementsAre("3 copies", "3 stages (1f1b)", "3 stages (gpipe)", "3 stages (interleaved)"))
      << "3 divides no 4 heads";
  for (const std::int64_t devices : {4, 6, 8, 12})
    for (const Strategy& strategy : strategies_of(Question(of_devices(devices)))) {
      EXPECT_EQ(strategy.data * strategy.tensor * strategy.pipeline, devices) << strategy.words();
      EXPECT_LE(strategy.pipeline, 6) << "a module each: " << strategy.words();
      EXPECT_EQ(4 % strategy.tensor, 0) << strategy.words();
    }
}

TEST(PlanStrategies, DivideLayersWithinAHost) {
  for (const Strategy& strategy : strategies_of(Question(of_devices(4, {"machine.host.devices=2"}))))
    EXPECT_LE(strategy.tensor, 2) << strategy.words();
}

// A mixture of six experts, in a network that is cut anywhere.
TEST(PlanStrategies, DivideExpertsAmongCopies) {
  PlanFlags flags = of_devices(4);
  flags.overrides.front() =
      "workload={family: moe, layers: 4, hidden: 64, heads: 4, key_heads: 2, feed_forward: 96, vocabulary: 256, "
      "sequence: 32, experts: 6, experts_per_token: 2}";
  EXPECT_THAT(words(flags),
              ::testing::IsSupersetOf(
                  {"4 copies", "4 copies, experts divided by 2", "2 copies of 2 stages (1f1b), experts divided by 2",
                   "2 copies, layers divided by 2", "2 copies, layers divided by 2, experts divided by 2"}));
  const Question question(flags);
  const Space space = space_of(question);
  for (const Region& region : regions_of(space))
    for (const Point& point : points_of(space, region, /*last_resort=*/false)) {
      const std::vector<std::string> settings = settings_of(space, point);
      if (std::find(settings.begin(), settings.end(), "parallel.expert=2") == settings.end()) continue;
      EXPECT_NE(std::find(settings.begin(), settings.end(), "policy={name: resident}"), settings.end());
    }
}

TEST(PlanStrategies, NeedWhatTheMachineHas) {
  PlanFlags flags = of_devices(2);
  flags.machine = "rtx_4090";
  flags.overrides.pop_back();
  EXPECT_THAT(words(flags), ElementsAre("2 copies", "layers divided by 2")) << "devices that send each other nothing";
}

TEST(PlanStrategies, AreKeysOfAScenario) {
  const Question question(of_devices(8));
  for (const Strategy& strategy : strategies_of(question)) {
    const Scenario scenario = question.with(strategy.settings());
    EXPECT_EQ(scenario.workload.devices, strategy.data);
    EXPECT_EQ(scenario.workload.tensor, strategy.tensor);
    EXPECT_EQ(scenario.parallel.pipeline, strategy.pipeline);
    EXPECT_EQ(scenario.parallel.chunks, strategy.chunks);
  }
}

// All points of all regions, once each; with so many samples whatever the strategy.
TEST(PlanStrategies, AreRegionsOfTheSpace) {
  const Question question(of_devices(4, {"workload.loss_tiles=1", "workload.linear_tiles=1"}));
  const Space space = space_of(question);
  std::vector<Point> all;
  for (const Region& region : regions_of(space))
    for (const Point& point : points_of(space, region, /*last_resort=*/true)) all.push_back(point);
  const std::size_t count = all.size();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.size(), count);
  constexpr std::size_t kEach = 997;  // reading a scenario takes its time
  for (std::size_t i = 0; i < all.size(); i += kEach) {
    const Point& point = all[i];
    const std::vector<std::string> settings = settings_of(space, point);
    const auto says = [&](const std::string& setting) {
      return std::find(settings.begin(), settings.end(), setting) != settings.end();
    };
    if (says("parallel.tensor=2")) {
      EXPECT_TRUE(says("policy={name: resident}")) << words_of(space, point);
    }
    if (says("parallel.pipeline=2")) {
      EXPECT_FALSE(says("workload.partition=states") || says("workload.partition=parameters"))
          << words_of(space, point);
    }
    const Scenario scenario = question.with(settings);
    EXPECT_EQ(samples_per_step(scenario.workload), 8) << words_of(space, point);
    EXPECT_GE(scenario.workload.micro_batches, scenario.parallel.pipeline);
  }
}

// What is written of sharing stays; so does a number of devices that a file says.
TEST(PlanStrategies, AreSearchedWhereNothingIsSaid) {
  EXPECT_TRUE(searches_strategies(Question(of_devices(4))));
  EXPECT_FALSE(searches_strategies(Question(of_devices(1))));
  PlanFlags flags = of_devices(0, {"workload.devices=4"});
  EXPECT_FALSE(searches_strategies(Question(flags)));
  flags = of_devices(0, {"parallel={data: 2, pipeline: 2}"});
  EXPECT_FALSE(searches_strategies(Question(flags)));
  EXPECT_THAT(space_of(Question(flags)).regions, IsEmpty());
}

// Micro-batches that a person fixed stay as large; fewer copies take more of them.
TEST(PlanStrategies, KeepTheSamplesOfAFixedBatch) {
  PlanFlags flags = of_devices(4, {"workload.batch=2", "workload.micro_batches=1"});
  flags.samples = 0;
  const Question question(flags);
  const Space space = space_of(question);
  ASSERT_EQ(space.axes.back().name, "strategy");
  for (const Choice& choice : space.axes.back().choices) {
    const Scenario scenario = question.with(choice.settings);
    EXPECT_EQ(scenario.workload.batch, 2);
    EXPECT_EQ(samples_per_step(scenario.workload), 8) << choice.words;
  }
}

Scenario shared_by(const Strategy& strategy, std::int64_t batch, std::int64_t micro_batches, const char* policy) {
  std::vector<std::string> settings = strategy.settings();
  settings.insert(settings.end(), {"workload.batch=" + std::to_string(batch), "steps=5",
                                   "workload.micro_batches=" + std::to_string(micro_batches),
                                   std::string("policy={name: ") + policy + "}"});
  // Messages and sums that take little, so that passes are most of a step.
  return Question(of_devices(8, {"machine.collective.bandwidth=1000GB/s", "machine.copies.peer.bandwidth=1000GB/s"}))
      .with(settings);
}

// No simulated step is below the bound, whatever the degrees, the schedule and the policy.
TEST(PlanBounds, HoldUnderEveryStrategy) {
  int runs = 0, tight = 0;
  for (const std::int64_t devices : {2, 4})
    for (const Strategy& strategy : strategies_of(Question(of_devices(devices))))
      for (const std::int64_t rounds : {1, 3})
        for (const char* policy : {"resident", "zero_offload", "balanced"}) {
          if (strategy.divides_layers() && std::string(policy) != "resident") continue;
          const Scenario scenario = shared_by(strategy, 2, strategy.pipeline * rounds, policy);
          const StepBound bound = step_bound(scenario);
          Simulation simulation(scenario);
          simulation.run();
          const double step_s = analyse(simulation.record()).steady_step_s;
          EXPECT_LE(bound.step_s, step_s * (1 + 1e-6)) << strategy.words() << ' ' << rounds << ' ' << policy;
          EXPECT_LE(bound.compute_s, bound.step_s);
          EXPECT_GT(bound.bytes, 0);
          ++runs;
          tight += bound.step_s > 0.8 * step_s ? 1 : 0;
        }
  EXPECT_GE(tight, runs / 4) << "of " << runs << ": bounds that bind nowhere would pass too";
}

// Of equal stages it is the whole step but for messages and updates: it knows the bubble.
TEST(PlanBounds, KnowTheBubble) {
  Scenario scenario = shared_by({.pipeline = 2, .schedule = "1f1b"}, 2, 4, "resident");
  const StepBound two = step_bound(scenario);
  EXPECT_GT(two.step_s, 1.1 * two.compute_s) << "a quarter of four micro-batches' time, less what the ends have";
  scenario.workload.micro_batches = 32;
  const StepBound many = step_bound(scenario);
  EXPECT_LT(many.step_s, 1.1 * many.compute_s);
}

// A rank has a part of what one device has: so it fits where all does not.
TEST(PlanBounds, TellTheMemoryOfARank) {
  const Scenario alone = shared_by({.data = 2}, 2, 4, "resident"),
                 stages = shared_by({.pipeline = 2, .schedule = "1f1b"}, 2, 4, "resident"),
                 divided = shared_by({.tensor = 2}, 2, 4, "resident");
  const std::int64_t whole = step_bound(alone).bytes;
  EXPECT_LT(step_bound(stages).bytes, 3 * whole / 4);
  EXPECT_LT(step_bound(divided).bytes, 3 * whole / 4);
}

}  // namespace
}  // namespace tandem::testing
