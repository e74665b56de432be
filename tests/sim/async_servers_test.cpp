// Asynchronous parameter servers in simulated runs: who waits for whom, in closed form, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/analysis.hpp"
#include "analysis/staleness.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"
#include "tests/sim/servers_refused.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Six steps, of much to compute and next to nothing to send.
Scenario two_workers(std::int64_t servers, std::int64_t staleness, double factor) {
  Scenario s = gpt_scenario("resident", 16 * kGiB);
  s.workload.batch = 1024;
  s.machine.peer.bytes_per_s = 1e14;
  s.workload.devices = 2;
  s.workload.parallel["servers"] = servers;
  s.workload.parallel["staleness"] = staleness;
  s.steps = 6;
  if (factor > 1) s.truth.stragglers = {{.rank = 1, .factor = factor}};
  return s;
}

// What a rank computes: all of it, and when it is done with that.
struct Computed {
  double all_s = 0, done_s = 0;
};
Computed computed(const Scenario& scenario, std::size_t rank) {
  Simulation simulation(scenario);
  simulation.run();
  const Analysis analysis = analyse(simulation.record());
  Computed of;
  for (const TimedCommand& timed : analysis.timeline.ranks[rank].commands) {
    if (timed.command->op == kNone || timed.command->lane.kind() != Engine::Compute) continue;
    of.all_s += static_cast<double>(timed.finished.ns - timed.started.ns) * 1e-9;
    of.done_s = std::max(of.done_s, static_cast<double>(timed.finished.ns) * 1e-9);
  }
  return of;
}

// Worker 1 takes three times as long. The other one begins its last step once the slow one has taken all but 1 + s of
// its own, if not by its own pace: s = 0 is synchronous. Where s is large nobody waits.
TEST(AsyncServers, WaitForTheSlowOnlyWhereTheBoundIsReached) {
  SimgridPlatform::reserve(1, 5);
  for (const std::int64_t servers : {1, 2})
    for (const std::int64_t s : {0, 1, 2, 3, 4, 100}) {
      SCOPED_TRACE(std::to_string(servers) + " servers, staleness " + std::to_string(s));
      const Computed fast = computed(two_workers(servers, s, 3), 0), slow = computed(two_workers(servers, s, 3), 1);
      const double steps = 6, step_s = fast.all_s / steps, slow_s = 3 * step_s;
      EXPECT_NEAR(slow.all_s, steps * slow_s, 1e-6);
      const double expected = std::max(fast.all_s, (steps - 1 - static_cast<double>(s)) * slow_s + step_s);
      EXPECT_NEAR(fast.done_s, expected, 0.02 * expected) << "loading aside";
      EXPECT_NEAR(slow.done_s, slow.all_s, 0.02 * slow.all_s) << "it never waits";
    }
}

TEST(AsyncServers, SayHowStaleUpdatesAre) {
  EXPECT_FALSE(staleness(two_workers(1, 0, 3), 6));
  // By turns: all but the first have missed one.
  const Staleness equal = *staleness(two_workers(1, 1, 1), 6);
  EXPECT_EQ(equal.updates, 12);
  EXPECT_EQ(equal.most, 1);
  EXPECT_DOUBLE_EQ(equal.mean, 11.0 / 12);
  // 0 0 0 1/3 0/1 0 0 1/3 1 1 1 1: the other's third comes as the slow one's first, and before it.
  const Staleness apart = *staleness(two_workers(1, 100, 3), 6);
  EXPECT_EQ(apart.most, 3);
  EXPECT_DOUBLE_EQ(apart.mean, (3 + 1 + 3) / 12.0);
}

// Any family, with noise: under the checks of order and contents, each update's gradient from one worker.
TEST(AsyncServers, KeepBytesInOrder) {
  SimgridPlatform::reserve(1, 5);
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    for (const double factor : {1.0, 2.5}) {
      SCOPED_TRACE(std::string(family->name) + " " + std::to_string(factor));
      Scenario s = gpt_scenario("resident", kGiB);
      s.machine = round_machine(kGiB, kGiB, kGiB);
      s.workload.family = family->name;
      s.workload.keys = family->keys->small_instance();
      s.workload.micro_batches = 2;
      s.workload.devices = 3;
      s.workload.parallel["servers"] = 2;
      s.workload.parallel["staleness"] = 2;
      s.truth.noise = 0.3;
      s.truth.stragglers = {{.rank = 2, .factor = factor}};
      Simulation run(s);
      for (const CheckedRank& rank : run_checked(run)) EXPECT_EQ(rank.violation, "");
    }
  }
}

TEST(AsyncServers, SayWhatIsNotBuilt) {
  const auto problem = [](const auto& change) { return problem_with_servers(1, change); };
  EXPECT_EQ(problem([](Scenario&) {}), "");
  EXPECT_EQ(problem([](Scenario& s) { s.workload.parallel["servers"] = 0; }),
            "parallel.staleness: is of workers beside parameter servers, and there are none; allowed: 0, or "
            "parallel.servers of 1 or more");
  const auto refuses = [](const auto& change) { expect_refused_with_servers(1, change); };
  refuses([](Scenario& s) { s.optimizer.clip_norm = 1; });
  refuses([](Scenario& s) { s.validation.every = 1; });
  refuses([](Scenario& s) { s.checkpoint.directory = "somewhere"; });
  refuses([](Scenario& s) { s.workload.precision = DType::F16; });
  refuses([](Scenario& s) { s.policy.name = "zero_offload"; });
}

}  // namespace
}  // namespace tandem::testing
