// Live runs whose policies follow one another train as plain LibTorch does, to the bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/run/succession.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario small(std::uint64_t seed) {
  Scenario s = testing::gpt_scenario("resident", 12 * kMiB, 2);
  s.machine = testing::round_machine(12 * kMiB, 64 * kMiB, 64 * kMiB);
  s.workload.micro_batches = seed % 2 == 0 ? 1 : 2;
  s.workload.recompute = seed % 4 == 1 ? "block" : "none";
  s.optimizer.clip_norm = seed % 3 == 0 ? 1 : 0;
  s.steps = 8;
  s.seed = seed;
  return s;
}

Scenario with_switches(std::uint64_t seed) {
  Scenario s = small(seed);
  std::mt19937_64 random(seed);
  std::vector<PolicyOptions> able;
  for (const std::string& name : testing::exact_policies())
    if (why_no_switch(s, scenario_under(s, {name, {}})).empty()) able.push_back({name, {}});
  s.policy = able[random() % able.size()];
  for (std::int32_t step = 1; step < s.steps; ++step)
    if (random() % 2 == 0) s.switches.push_back({step, able[random() % able.size()]});
  return s;
}

TEST(LiveSwitching, RandomPoliciesInTurnTrainAsPlainLibTorch) {
  const char* wanted = std::getenv("TANDEM_SWITCH_SEEDS");  // more, by hand
  const std::uint64_t seeds = wanted != nullptr ? std::stoull(wanted) : 16;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Scenario scenario = with_switches(seed);
    std::string names = std::to_string(seed) + ": " + scenario.policy.name;
    for (const PolicySwitch& to : scenario.switches)
      names += ", " + std::to_string(to.after_step) + " " + to.policy.name;
    SCOPED_TRACE(names);
    expect_trains_as_reference(scenario);
  }
}

// Resumed in the middle, a run goes on under the policy that was in force.
TEST(LiveSwitching, AResumedRunGoesOnUnderThePolicyOfItsStep) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "switched_run";
  std::filesystem::remove_all(folder);
  Scenario scenario = small(3);
  scenario.switches = {{2, {"zero_offload", {}}}, {6, {"balanced", {}}}};
  scenario.checkpoint.directory = folder.string();
  scenario.steps = 4;
  scenario.switches.pop_back();
  {
    Training training(scenario);
    run_checked(training);
  }
  scenario.steps = 8;
  scenario.switches.push_back({6, {"balanced", {}}});
  resume_from(scenario, folder.string(), true);
  ASSERT_EQ(scenario.first_step, 4);
  Training training(scenario);
  run_checked(training);
  EXPECT_EQ(training.graph().era().first_step, 2);  // of this run
  Scenario plain = scenario;
  plain.first_step = 0, plain.resume_folder.clear(), plain.checkpoint = {};
  const ReferenceResult reference = train_reference(plain, *open_data(plain), {});
  EXPECT_EQ(training.parameters(), reference.parameters);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem
