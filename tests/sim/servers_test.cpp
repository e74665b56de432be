// Parameter servers in simulated runs: who has which states, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/servers/owners.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"
#include "tests/sim/servers_refused.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::int64_t bytes_of(const Simulation& simulation, Rank rank, Role role) {
  const Graph& graph = simulation.graph(rank);
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).role == role) bytes += graph.tensor(id).bytes;
  return bytes;
}

Scenario small(const WorkloadEntry& family, std::int64_t workers, std::int64_t servers) {
  Scenario s = gpt_scenario("resident", kGiB);
  s.machine = round_machine(kGiB, kGiB, kGiB);
  s.workload.family = family.name;
  s.workload.keys = family.keys->small_instance();
  s.workload.micro_batches = 2;
  s.workload.devices = workers;
  s.workload.parallel["servers"] = servers;
  s.truth.noise = 0.3;
  return s;
}

// All states are the servers', each once, and about as many each; under the checks of order and contents.
TEST(Servers, HaveAllStatesOfEveryFamily) {
  SimgridPlatform::reserve(1, 5);
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    SCOPED_TRACE(family->name);
    const Scenario alone = small(*family, 1, 0);
    std::int64_t states = 0, parameters = 0;
    {
      Simulation one(alone);
      one.run();
      states = bytes_of(one, 0, Role::OptimizerState), parameters = bytes_of(one, 0, Role::Parameter);
    }
    const Scenario scenario = small(*family, 3, 2);
    ASSERT_EQ(rank_count(scenario), 5);
    Simulation run(scenario);
    for (const CheckedRank& rank : run_checked(run)) EXPECT_EQ(rank.violation, "");
    for (Rank worker = 0; worker < 3; ++worker) {
      EXPECT_EQ(bytes_of(run, worker, Role::OptimizerState), 0);
      EXPECT_EQ(bytes_of(run, worker, Role::Parameter), parameters);
    }
    EXPECT_EQ(bytes_of(run, 3, Role::OptimizerState) + bytes_of(run, 4, Role::OptimizerState), states);
  }
}

TEST(Servers, HaveAboutAsManyElementsEach) {
  TrainingPlan plan;
  for (const std::int64_t elements : {5, 9, 0, 4, 3, 3}) {
    plan.stages.emplace_back();
    plan.stages.back().elements = elements;
  }
  EXPECT_EQ(server_of(plan, 2), (std::vector<std::int32_t>{1, 0, kNone, 1, 0, 1}));
  EXPECT_THROW(server_of(plan, 6), ConfigError);
}

TEST(Servers, SayWhatIsNotBuilt) {
  const auto problem = [](const auto& change) { return problem_with_servers(0, change); };
  EXPECT_EQ(problem([](Scenario&) {}), "");
  const auto refuses = [](const auto& change) { expect_refused_with_servers(0, change); };
  refuses([](Scenario& s) { s.parallel.pipeline = 2; });
  refuses([](Scenario& s) { s.workload.tensor = 2; });
  refuses([](Scenario& s) { s.workload.partition = "states"; });
  refuses([](Scenario& s) { s.policy.name = "zero_offload"; });
  refuses([](Scenario& s) { s.optimizer.clip_norm = 1; });
  refuses([](Scenario& s) { s.workload.precision = DType::F16; });
  refuses([](Scenario& s) { s.workload.precision = DType::F16, s.optimizer.loss_scaling = false; });
  refuses([](Scenario& s) { s.validation.every = 1; });
  refuses([](Scenario& s) { s.workload.parallel["servers"] = 100; });
}

}  // namespace
}  // namespace tandem::testing
