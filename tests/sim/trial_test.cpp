// A refused simulation says what would fit: the same simulation with that much memory is done.
#include "sim/trial.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/run/load.hpp"
#include "core/run/policies.hpp"
#include "sim/simulate.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kEach = 200'000, kAll = 1'000'000;

constexpr const char* kSmall =
    "machine: round_numbers\n"
    "limits: {host_bytes: 29MB, disk_bytes: 1MiB, device_bytes: 1GiB}\n"
    "workload: {family: gpt, layers: 8, hidden: 128, heads: 4, vocabulary: 8000, sequence: 32, batch: 1, precision: "
    "bf16, recompute: block}\n"
    "policy: {name: zero_offload}\n"
    "steps: 2\n";

Scenario parsed(const std::vector<std::string>& settings = {}) { return parse_scenario(kSmall, "test.yaml", settings); }

TEST(SimulatedTrials, TellWhatBecameOfARun) {
  SimulatedTrials trials(Fidelity::Shared, kEach, kAll);
  EXPECT_EQ(trials(parsed({"limits={device_bytes: 1GiB}"})).kind, TrialResult::Kind::Done);
  const TrialResult refused = trials(parsed());
  EXPECT_EQ(refused.kind, TrialResult::Kind::Refused);
  EXPECT_EQ(refused.figures.tier, Tier::HostPinned);
  EXPECT_EQ(refused.figures.capacity_bytes, 29'000'000);
  EXPECT_GT(refused.figures.least_bytes, 29'000'000);
}

TEST(SimulatedTrials, GiveUpAfterSoManyCommands) {
  const Scenario fits = parsed({"limits={device_bytes: 1GiB}"});
  EXPECT_EQ(SimulatedTrials(Fidelity::Shared, 10, kAll)(fits).kind, TrialResult::Kind::Unknown);
  SimulatedTrials few(Fidelity::Shared, kEach, 1);
  EXPECT_EQ(few(fits).kind, TrialResult::Kind::Unknown);
  EXPECT_EQ(few(parsed()).kind, TrialResult::Kind::Unknown) << "nothing is left, not even for what would be refused";
}

TEST(SimulatedTrials, FindWhatIsEnoughUnderEveryPolicy) {
  int refused = 0, found = 0;
  for (const PolicyEntry* policy : policies())
    for (const char* limit : {"limits.host_bytes=26MB", "limits.device_bytes=6MB"}) {
      std::vector<std::string> settings{"limits={}", "policy={name: " + std::string(policy->name) + "}", limit};
      const Scenario scenario = parsed(settings);
      SimulatedTrials trials(Fidelity::Shared, kEach, kAll);
      const TrialResult first = trials(scenario);
      if (first.kind != TrialResult::Kind::Refused) continue;
      ++refused;
      const Tier tier = first.figures.tier;
      const Enough enough = find_enough(scenario, first.figures, std::ref(trials));
      ASSERT_TRUE(enough.found) << policy->name << ' ' << limit;
      const std::int64_t bytes = enough.bytes[static_cast<std::size_t>(tier)];
      EXPECT_GT(bytes, first.figures.capacity_bytes) << policy->name << ' ' << limit;
      if (std::count(enough.bytes.begin(), enough.bytes.end(), 0) != kTierCount - 1) continue;
      ++found;
      settings.back() = std::string(tier == Tier::Device ? "limits.device_bytes=" : "limits.host_bytes=") +
                        std::to_string(bytes) + "B";
      const Scenario larger = parsed(settings);
      Simulation simulation(larger);
      EXPECT_NO_THROW(simulation.run()) << policy->name << ' ' << settings.back();
    }
  EXPECT_GT(found, 5);
}

}  // namespace
}  // namespace tandem::testing
