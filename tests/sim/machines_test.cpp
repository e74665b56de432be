// What a machine lacks is said when the scenario is read: none runs into a rate that its profile does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/run/policies.hpp"
#include "sim/trial.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem::testing {
namespace {

std::vector<std::string> machines() {
  std::vector<std::string> out;
  for (const auto& file : std::filesystem::directory_iterator(source_path("hardware_profiles")))
    out.push_back(file.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

// Sizes as odd as people's, at three micro-batches.
std::string scenario_text(const std::string& machine, std::string_view policy, const char* more) {
  return "machine: " + machine +
         "\nworkload: {family: gpt, layers: 3, hidden: 100, heads: 5, vocabulary: 1003, sequence: 37, batch: 3, "
         "micro_batches: 3, precision: fp16" +
         more + "}\npolicy: {name: " + std::string(policy) + "}\nsteps: 2\n";
}

// Whether the scenario was refused when it was read, for its number of devices. What is read runs to its end.
bool is_refused_for_devices(const std::string& text) {
  SimulatedTrials trials(Fidelity::Shared, 1'000'000, 1'000'000);
  try {
    const TrialResult result = trials(parse_scenario(text, "test.yaml"));
    EXPECT_NE(result.kind, TrialResult::Kind::Unknown) << text;
    return false;
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("workload.devices: "), std::string::npos) << error.what() << '\n' << text;
    return true;
  }
}

TEST(EveryMachine, TrainsOnSeveralDevicesOrSaysWhatItLacks) {
  int refused = 0, ran = 0;
  for (const std::string& machine : machines())
    for (const char* more :
         {"", ", devices: 3", ", devices: 2, partition: states", ", devices: 4, partition: parameters"})
      for (const char* policy : {"zero_offload", "on_demand"})
        ++(is_refused_for_devices(scenario_text(machine, policy, more)) ? refused : ran);
  EXPECT_GT(refused, 0);
  EXPECT_GT(ran, refused);
}

}  // namespace
}  // namespace tandem::testing
