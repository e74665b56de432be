// What is said of a pipeline's stages: shares of waiting against closed forms, bytes on links against what crosses
// cuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr double kNear = 1e-3;  // copies of 64 bytes, updates of 32 numbers

Scenario stages_of(std::int64_t stages, const std::string& schedule, std::int64_t micro_batches) {
  Scenario s = layers_scenario("resident", 16 * kGiB, 12, 64, kMs, 2 * kMs, 1);
  s.workload.micro_batches = micro_batches;
  s.parallel = {.pipeline = stages, .schedule = schedule};
  s.steps = 4;
  return s;
}

double bytes_on(const StageShare& stage, Engine kind, bool between_hosts) {
  for (const LinkTraffic& link : stage.links)
    if (link.kind == kind && link.between_hosts == between_hosts) return link.bytes;
  return 0;
}

TEST(PipelineStages, EachWaitsTheClosedFormsShare) {
  for (const std::string schedule : {"gpipe", "1f1b", "naive", "zero_bubble"})
    for (const std::int64_t p : {2, 4})
      for (const std::int64_t m : {4, 12}) {
        SCOPED_TRACE(schedule + ", " + std::to_string(p) + " stages, " + std::to_string(m) + " micro-batches");
        const Scenario scenario = stages_of(p, schedule, m);
        Simulation simulation(scenario);
        simulation.run();
        const Analysis analysis = analyse(simulation.record());
        ASSERT_EQ(analysis.stages.size(), static_cast<std::size_t>(p));
        const auto stages = static_cast<double>(p), micro_batches = static_cast<double>(m);
        const double bubbles = schedule == "zero_bubble" ? (stages - 1) / 3 : stages - 1;
        const double share = bubbles / (schedule == "naive" ? stages : micro_batches + bubbles);
        for (const StageShare& stage : analysis.stages) EXPECT_NEAR(stage.waiting, share, kNear) << stage.stage;
        EXPECT_NEAR(waiting_share(analysis.stages), share, kNear);
      }
}

// Forwards send 64 bytes down, backwards 64 up, of each of 4 micro-batches. One device a host: all of it leaves.
TEST(PipelineStages, SendsWhatCrossesItsCuts) {
  for (const std::int32_t on_a_host : {0, 1}) {
    Scenario s = stages_of(3, "1f1b", 4);
    s.machine.devices_per_host = on_a_host;
    Simulation simulation(s);
    simulation.run();
    const Analysis analysis = analyse(simulation.record());
    const std::vector<double> cuts{1, 2, 1};
    ASSERT_EQ(analysis.stages.size(), cuts.size());
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      EXPECT_DOUBLE_EQ(bytes_on(analysis.stages[i], Engine::P2P, on_a_host == 1), cuts[i] * 4 * 64) << i;
      EXPECT_EQ(bytes_on(analysis.stages[i], Engine::P2P, on_a_host == 0), 0) << i;
    }
  }
}

TEST(PipelineStages, RanksOfAStageAreOne) {
  Scenario s = stages_of(2, "1f1b", 6);
  const auto share = [](const Scenario& scenario) {
    Simulation simulation(scenario);
    simulation.run();
    const Analysis analysis = analyse(simulation.record());
    EXPECT_EQ(analysis.stages.size(), 2u);
    EXPECT_EQ(analysis.stages[0].ranks.size(), scenario.workload.devices > 1 && !scenario.parallel.fold ? 2u : 1u);
    return waiting_share(analysis.stages);
  };
  s.workload.devices = 2;
  const double apart = share(s);
  s.parallel.fold = true;
  EXPECT_NEAR(share(s), apart, 1e-6);
}

// Passes follow each other in the schedule's order, each of one micro-batch.
TEST(PipelineStages, PassesAreTheSchedules) {
  const Scenario scenario = stages_of(2, "gpipe", 3);
  Simulation simulation(scenario);
  simulation.run();
  const Analysis analysis = analyse(simulation.record());
  for (const StageShare& stage : analysis.stages) {
    std::string order;
    std::int64_t end_ns = 0;
    for (const StagePass& pass : stage_passes(analysis.timeline.ranks[stage.ranks.front()], 2)) {
      EXPECT_GE(pass.begin_ns, end_ns);
      end_ns = pass.end_ns;
      if (pass.micro_batch == kNone) continue;
      order += (pass.phase == Phase::Forward ? "F" : "B") + std::to_string(pass.micro_batch);
      EXPECT_EQ(pass.end_ns - pass.begin_ns, (pass.phase == Phase::Forward ? 6 : 12) * kMs) << order;
    }
    EXPECT_EQ(order, "F0F1F2B0B1B2");
  }
}

// Two blocks, one after the other or apart.
TEST(PipelineStages, ABackwardInTwoIsTwoPasses) {
  const Scenario scenario = stages_of(2, "zero_bubble", 3);
  Simulation simulation(scenario);
  simulation.run();
  const Analysis analysis = analyse(simulation.record());
  const std::string orders[] = {"F0F1B0B0F2B1B1B2B2", "F0B0F1B1B0F2B2B1B2"};
  for (const StageShare& stage : analysis.stages) {
    std::string order;
    for (const StagePass& pass : stage_passes(analysis.timeline.ranks[stage.ranks.front()], 2)) {
      if (pass.micro_batch == kNone) continue;
      order += (pass.phase == Phase::Forward ? "F" : "B") + std::to_string(pass.micro_batch);
      EXPECT_EQ(pass.end_ns - pass.begin_ns, 6 * kMs) << order;
    }
    EXPECT_EQ(order, orders[stage.stage]);
  }
}

TEST(PipelineStages, OfOtherRunsThereAreNone) {
  const Scenario scenario = layers_scenario("resident", 16 * kGiB, 2, 64, kMs, 2 * kMs, 1);
  Simulation simulation(scenario);
  simulation.run();
  EXPECT_TRUE(analyse(simulation.record()).stages.empty());
}

}  // namespace
}  // namespace tandem::testing
