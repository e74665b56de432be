// A measured machine whose figures are replaced forgets how sure it was of them, and of nothing else.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/run/load.hpp"

namespace tandem {
namespace {

using ::testing::UnorderedElementsAre;
using Texts = std::vector<std::string>;

// h200_measured states all six causes, and the optimizer's rate by threads.
Scenario scenario(const std::string& machine, const Texts& settings = {}) {
  return parse_scenario("machine: " + machine +
                            "\n"
                            "workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, "
                            "batch: 2}\npolicy: {name: on_demand}\n",
                        "case.yaml", settings);
}

Texts known(const Scenario& of) {
  Texts causes;
  for (const auto& [cause, uncertainty] : of.machine.uncertainty) causes.emplace_back(name_of(cause));
  return causes;
}

Texts all_but(const std::string& forgotten) {
  Texts causes{"compute", "copies", "cpu_optimizer", "disk", "dispatch", "sharing"};
  std::erase(causes, forgotten);
  return causes;
}

struct Case {
  const char* setting;
  const char* forgotten;
};

TEST(ReplacedFigures, TakeTheirOwnUncertaintyWithThem) {
  EXPECT_EQ(known(scenario("h200_measured")), all_but(""));
  for (const auto& [setting, forgotten] :
       {Case{"machine.compute.peak.bf16=900TFLOPS", "compute"}, Case{"machine.tiers.device.bandwidth=4TB/s", "compute"},
        Case{"machine.copies.h2d.bandwidth=50GB/s", "copies"},
        Case{"machine.copies.d2h={bandwidth: 50GB/s, latency: 5us}", "copies"},
        Case{"machine.copies.shared_bandwidth=90GB/s", "copies"},
        Case{"machine.cpu.optimizer.rate=5Gparameters/s", "cpu_optimizer"},
        Case{"machine.copies.disk_read.bandwidth=3GB/s", "disk"}, Case{"machine.host.wake=3us", "dispatch"},
        Case{"machine.tiers.host_pinned.bandwidth=150GB/s", "sharing"}, Case{"machine.interference=[]", "sharing"},
        Case{"limits.h2d=20GB/s", "copies"}, Case{"machine.tiers.device.capacity=80GB", ""},
        Case{"machine.name=other", ""}, Case{"limits.device_bytes=40GB", ""}, Case{"limits.h2d=500GB/s", ""},
        // The profile says what fewer threads update.
        Case{"limits.cores=8", ""}})
    EXPECT_EQ(known(scenario("h200_measured", {setting})), all_but(forgotten)) << setting;
}

TEST(ReplacedFigures, OfAFileThatDerivesFromIt) {
  const Scenario derived = scenario("{derive_from: h200_measured, cpu: {optimizer: {rate: 5Gparameters/s}}}");
  EXPECT_EQ(known(derived), all_but("cpu_optimizer"));
  EXPECT_EQ(known(parse_scenario(derived.text, "a log's")), all_but("cpu_optimizer"));
  EXPECT_EQ(known(scenario("{derive_from: h200_measured, tiers: {disk: {capacity: 60GB}}}")), all_but(""));
}

TEST(ReplacedFigures, MayBeStatedAnew) {
  const Texts settings{"machine.cpu.optimizer.rate=5Gparameters/s", "machine.uncertainty.cpu_optimizer=0.03"};
  const Scenario restated = scenario("h200_measured", settings);
  EXPECT_EQ(known(restated), all_but(""));
  EXPECT_DOUBLE_EQ(restated.machine.uncertainty.at(TimeCause::CpuOptimizer).relative, 0.03);
  EXPECT_EQ(known(scenario("{derive_from: h200_measured, compute: {launch: 3us}, uncertainty: {compute: 0.2}}")),
            all_but(""));
}

TEST(ReplacedFigures, FewerCoresThanMeasuredAreAGuess) {
  const Scenario halved =
      scenario("{derive_from: round_numbers, uncertainty: {compute: 0.1, cpu_optimizer: 0.1}}", {"limits.cores=4"});
  EXPECT_THAT(known(halved), UnorderedElementsAre("compute"));
}

TEST(ReplacedFigures, AllOfThemLeaveNone) {
  EXPECT_TRUE(
      known(scenario("{derive_from: round_numbers, uncertainty: {compute: 0.1}}", {"machine.compute.launch=1us"}))
          .empty());
}

}  // namespace
}  // namespace tandem
