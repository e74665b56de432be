// Ranks that are slow: whole simulated runs against closed forms.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::vector<std::int64_t> steps_ns(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).steps.times_ns;
}

double step_s(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median;
}

// Kernels and copies of 10 ms, on a rank that takes half as long again; an all-reduce of 100 ms (2 * 1/2 * 1 GB at 10
// GB/s) that it takes part in.
TEST(Stragglers, AllCommandsTakeLonger) {
  Truth truth;
  truth.stragglers = {{.rank = 1, .factor = 1.5}};
  SimWorld world(round_machine(), Fidelity::Alone, 2, truth);
  std::vector<CommandId> computes, copies, reduces;
  for (const Rank rank : {0, 1}) {
    computes.push_back(world.run(Engine::Compute, 10 * kMs, {}, rank));
    copies.push_back(world.copy(Engine::H2D, kGB / 10, {}, rank));
    reduces.push_back(world.collective(0, kGB, {computes.back()}, rank));
  }
  world.drain();
  EXPECT_EQ(world.finished(computes[0], 0), 10 * kMs);
  EXPECT_EQ(world.finished(computes[1], 1), 15 * kMs);
  EXPECT_EQ(world.finished(copies[0], 0), 10 * kMs);
  EXPECT_EQ(world.finished(copies[1], 1), 15 * kMs);
  for (const Rank rank : {0, 1}) EXPECT_EQ(world.finished(reduces[static_cast<std::size_t>(rank)], rank), 165 * kMs);
}

// The slow rank does all that others do, and they wait for it: the step takes the slow one's time.
TEST(Stragglers, DataParallelTakesTheSlowestTime) {
  Scenario s = layers_scenario("resident", 16 * kGiB, 6, 1 << 20, kMs, 2 * kMs, 1);
  s.workload.devices = 4;
  s.steps = 4;
  const double alone = step_s(s);
  for (const Rank rank : {0, 3}) {
    s.truth.stragglers = {{.rank = rank, .factor = 2}};
    EXPECT_NEAR(step_s(s), 2 * alone, 1e-9) << rank;
  }
  s.truth.stragglers.push_back({.rank = 1, .factor = 3});
  EXPECT_NEAR(step_s(s), 3 * alone, 1e-9);
}

// Three stages of four layers, 4 ms forward and 8 ms backward a micro-batch. M micro-batches follow each other at the
// pace of the slow stage, and go through the others once: (P - 1) * 12 ms + M * factor * 12 ms. Under 1F1B some of the
// others' time lies beside the slow stage's last backwards, but for the last stage, which has none to wait for.
TEST(Stragglers, APipelineGoesAtTheSlowestStagesPace) {
  const double stage_s = 12e-3, slow_s = 8 * 1.5 * stage_s, all_s = 2 * stage_s + slow_s;
  for (const char* schedule : {"gpipe", "1f1b"})
    for (const Rank slow : {0, 1, 2}) {
      SCOPED_TRACE(std::string(schedule) + " " + std::to_string(slow));
      Scenario s = layers_scenario("resident", 16 * kGiB, 12, 64, kMs, 2 * kMs, 1);
      s.workload.micro_batches = 8;
      s.parallel = {.pipeline = 3, .schedule = schedule};
      s.steps = 4;
      s.truth.stragglers = {{.rank = slow, .factor = 1.5}};
      const double step = step_s(s);
      EXPECT_LE(step, all_s * (1 + 1e-4));
      EXPECT_GE(step, slow_s);
      const bool nothing_beside = s.parallel.schedule == "gpipe" || slow == 2;
      if (nothing_beside) {
        EXPECT_NEAR(step, all_s, 1e-4 * all_s);
      }
    }
}

// The noise of a seed is the same with a slow rank as without: each step is as many times as long.
TEST(Stragglers, LeaveTheNoiseOfASeed) {
  Scenario s = layers_scenario("resident", 16 * kGiB, 6, 64, kMs, 2 * kMs, 1);
  s.steps = 6;
  s.seed = 7;
  s.truth.noise = 0.2;
  const std::vector<std::int64_t> before = steps_ns(s);
  EXPECT_NE(before.front(), before.back());
  s.truth.stragglers = {{.rank = 0, .factor = 3}};
  const std::vector<std::int64_t> slow = steps_ns(s);
  ASSERT_EQ(slow.size(), before.size());
  for (std::size_t i = 0; i < slow.size(); ++i)
    EXPECT_NEAR(static_cast<double>(slow[i]), 3.0 * static_cast<double>(before[i]), 200) << "ns: commands are rounded";
}

}  // namespace
}  // namespace tandem::testing
