// What a scenario says of many machines. Wrong ones are told with their place.
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

const std::string kTwoRanks =
    "machine: {derive_from: m, collective: {bandwidth: 1GB/s}}\n"
    "workload: {family: layers, layers: 2, layer_bytes: 64B, forward: 1ms, backward: 1ms, optimizer: 1ms}\n";

TEST(Stragglers, AreRanksThatAreThere) {
  EXPECT_EQ(scenario_error(kTwoRanks + "parallel: {data: 2}\ntruth: {stragglers: [{rank: 1, factor: 1.5}]}\n"), "");
  EXPECT_EQ(scenario_error(kTwoRanks + "parallel: {data: 2}\ntruth:\n  stragglers:\n  - {rank: 2, factor: 1.5}\n"),
            "bad.yaml:6:12: truth.stragglers.0.rank: there are 2 ranks; allowed: 0 to 1");
  EXPECT_EQ(scenario_error(kTwoRanks + "truth: {stragglers: [{rank: 0, factor: 2}, {rank: 0, factor: 3}]}\n"),
            "bad.yaml:3:51: truth.stragglers.1.rank: is slow already; allowed: each rank once");
  EXPECT_EQ(scenario_error(kTwoRanks + "truth: {stragglers: [{rank: 0, factor: 0.5}]}\n"),
            "bad.yaml:3:40: truth.stragglers.0.factor: '0.5' is too small; allowed: a number from 1 to 1000");
}

TEST(Stragglers, AreNotFolded) {
  const std::string error =
      scenario_error(kTwoRanks + "parallel: {data: 2, fold: true}\ntruth: {stragglers: [{rank: 0, factor: 2}]}\n");
  EXPECT_NE(error.find("parallel.fold: ranks are alike only where none is slow"), std::string::npos) << error;
}

}  // namespace
}  // namespace tandem::test
