// Epochs instead of steps: as many whole steps as an epoch's samples fill, so many times.
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

const std::string kWork =
    "machine: {derive_from: m, collective: {bandwidth: 1GB/s}}\n"
    "workload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2, batch: 10, devices: 3}\n";

std::int32_t steps_of(const std::string& more) {
  return read_scenario(kWork + more, "good.yaml", {}, kHostileFolder + "/machines", fixed_names(), {}).steps;
}

TEST(Epochs, AreWholeSteps) {
  EXPECT_EQ(steps_of("epochs: 1\ndata: {samples: 60000}\n"), 2000);
  EXPECT_EQ(steps_of("epochs: 7\ndata: {samples: 119}\n"), 21) << "29 samples are left each time";
  EXPECT_EQ(steps_of("epochs: 1\ndata: {samples: 30}\n"), 1);
  EXPECT_EQ(steps_of("steps: 9\n"), 9);
  EXPECT_EQ(steps_of("steps: 21\nepochs: 7\ndata: {samples: 119}\n"), 21) << "as a log has it";
}

TEST(Epochs, SayWhatDoesNotGoWithThem) {
  const auto error = [](const std::string& more) { return scenario_error(kWork + more); };
  EXPECT_EQ(error("epochs: 2\n"),
            "bad.yaml:3:9: epochs: nothing says how many samples an epoch has; allowed: beside data.samples");
  EXPECT_EQ(error("data: {samples: 100}\n"),
            "bad.yaml:3:17: data.samples: counts samples of an epoch; allowed: beside epochs");
  EXPECT_EQ(error("epochs: 2\nsteps: 3\ndata: {samples: 100}\n"),
            "bad.yaml:4:8: steps: epochs of data.samples are 6; allowed: one of them");
  EXPECT_EQ(error("epochs: 2\ndata: {samples: 29}\n"),
            "bad.yaml:4:17: data.samples: a step takes 30 samples; allowed: at least as many");
  EXPECT_EQ(error("epochs: 1000000000\ndata: {samples: 60}\n"),
            "bad.yaml:3:9: epochs: an epoch has 2 steps; allowed: at most 1000000000 steps in all");
}

}  // namespace
}  // namespace tandem::test
