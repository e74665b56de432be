// Another host's workers decode a share of each batch, cut between items of any size.
#include <gtest/gtest.h>

#include "core/workloads/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000, kSteps = 4;

// Eight pictures a step of 24 x 24 x 3 bytes, which do not divide a page; 10 ms a picture and thread.
Scenario pictures(double remote_share) {
  Scenario s;
  s.machine = round_machine(std::int64_t{1} << 30);
  for (const char* stage : {"read", "jpeg_decode", "resize", "normalise", "cache_copy"}) s.machine.input_stages[stage];
  s.machine.input_stages["jpeg_decode"].item_ns = 10.0 * kMs;
  s.machine.input_workers = 1;
  s.machine.remote_workers = 3;
  s.machine.remote_bytes_per_s = 1e12;
  s.workload.family = "vit";
  s.workload.keys = find_workload("vit")->keys->small_instance();
  s.workload.keys["image"] = 24, s.workload.keys["channels"] = 3, s.workload.keys["patch"] = 8;
  s.workload.batch = 8;
  s.pipeline.given = true;
  s.pipeline.remote_workers = 3;
  s.pipeline.remote_share = remote_share;
  s.policy.name = "resident";
  s.steps = kSteps;
  return s;
}

double step_ms(double remote_share) {
  const Scenario scenario = pictures(remote_share);
  Simulation simulation(scenario, Fidelity::Alone);
  simulation.run();
  return static_cast<double>(simulation.log().entries().back().batch.observed.ns) / kMs / kSteps;
}

TEST(RemoteWorkers, DecodeTheShareThatIsTheirs) {
  EXPECT_NEAR(step_ms(0), 80, 1) << "eight pictures on one thread";
  EXPECT_NEAR(step_ms(0.75), 22.5, 0.5) << "six on three threads there: their share of three rounds; two here take 20";
  EXPECT_NEAR(step_ms(1), 30, 1) << "eight on three threads there: three rounds";
}

}  // namespace
}  // namespace tandem::testing
