// What ranks that divide states, or parameters too, have on the device: no more than ranks that divide nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/memory.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "sim/simgrid_platform.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMB = 1'000'000;

using Options = std::map<std::string, std::string>;

// Parameters outweigh all else.
Scenario narrow(int layers, std::int64_t hidden, std::int64_t devices, const std::string& partition) {
  Scenario scenario = gpt_scenario("zero_offload", 16 * kGiB, layers);
  scenario.machine = round_machine(16 * kGiB, 256 * kGiB, 1000 * kGiB);
  scenario.workload.keys["hidden"] = hidden;
  scenario.workload.keys["heads"] = 16;
  scenario.workload.keys["vocabulary"] = 500;
  scenario.workload.keys["sequence"] = 16;
  scenario.workload.batch = 1;
  scenario.workload.recompute = "block";
  scenario.workload.precision = DType::BF16;
  scenario.workload.devices = devices;
  scenario.workload.partition = partition;
  return scenario;
}

// None: the policy cannot divide.
std::optional<std::int64_t> device_bytes(const Scenario& scenario) {
  try {
    Simulation simulation(scenario);
    simulation.run();
    std::int64_t most = 0;
    for (const RankRecord& rank : simulation.record().ranks)
      most = std::max(most, rank.peak_bytes[static_cast<std::size_t>(Tier::Device)]);
    return most;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// A network of 109 million parameters in bf16: 218 MB, of which a layer's are 25 MB. Beside all parameters are one
// whole gradient and another that the ranks add up.
TEST(PartitionMemory, APartIsNotBesideTheWhole) {
  SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/8);
  const auto of = [](std::int64_t devices, const char* partition) {
    Scenario scenario = narrow(8, 1024, devices, partition);
    scenario.workload.keys["vocabulary"] = 8000;
    scenario.policy.options["parameters"] = "device";
    return device_bytes(scenario).value();
  };
  for (const std::int64_t devices : {2, 4}) {
    EXPECT_LE(of(devices, "states"), of(devices, "none")) << devices;
    EXPECT_LE(of(devices, "states"), 310 * kMB) << devices;
    EXPECT_LE(of(devices, "parameters"), of(devices, "none")) << devices;
  }
}

// Buckets that do not divide are padded, by less than the device's alignment a layer at these sizes.
constexpr std::int64_t kPadding = 5 * 512;

// Compares a policy's runs on 2, 3, 4 and 8 ranks; how many there were.
int compare(const std::string& policy, const Options& options) {
  int compared = 0;
  for (const DType precision : {DType::F32, DType::BF16, DType::F16}) {
    const auto of = [&](std::int64_t devices, const char* partition) {
      Scenario scenario = narrow(3, 128, devices, partition);
      scenario.policy.name = policy;
      scenario.policy.options = options;
      scenario.workload.precision = precision;
      scenario.steps = 2;
      return device_bytes(scenario);
    };
    const auto undivided = of(2, "none");
    for (const std::int64_t devices : {2, 3, 4, 8})
      for (const char* partition : {"states", "parameters"}) {
        const auto divided = of(devices, partition);
        if (!divided || !undivided) continue;
        EXPECT_LE(*divided, *undivided + kPadding)
            << policy << ' ' << partition << " on " << devices << ", " << name_of(precision);
        ++compared;
      }
  }
  return compared;
}

TEST(PartitionMemory, NoPolicyTakesMoreThanUndivided) {
  SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/8);
  int compared = 0;
  for (const PolicyEntry* policy : policies()) compared += compare(std::string(policy->name), {});
  EXPECT_GE(compared, 14 * 3 * 4 * 2);
}

TEST(PartitionMemory, NoOptionTakesMoreThanUndivided) {
  SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/8);
  const std::vector<std::pair<std::string, Options>> all = {
      {"zero_offload", {{"parameters", "device"}}},
      {"zero_offload", {{"parameters", "device"}, {"variant", "deepspeed"}}},
      {"zero_offload", {{"parameters", "device"}, {"delayed_update", "true"}}},
      {"zero_infinity", {{"parameters", "device"}, {"gradients", "device"}}},
      {"mlp_offload", {{"parameters", "device"}}}};
  int compared = 0;
  for (const auto& [policy, options] : all) compared += compare(policy, options);
  EXPECT_EQ(compared, 5 * 3 * 4 * 2);
}

// Where memory reports file bytes: a whole parameter is a parameter, a whole gradient a gradient.
TEST(PartitionMemory, WhatIsWholeHasItsRole) {
  Scenario scenario = narrow(4, 128, 2, "states");
  scenario.policy.options["parameters"] = "device";
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph(0);
  std::int64_t whole = 0, activations = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.name.ends_with(".whole_parameter")) whole += tensor.bytes;
    if (tensor.reported_role() == Role::Activation) activations += tensor.bytes;
  }
  const RunRecord record = simulation.record();
  const Timeline timeline = make_timeline(record);
  std::int64_t most_parameters = 0, most_activations = 0;
  const MemorySeries memory = memory_over_time(timeline.ranks[0]);
  for (const MemoryPoint& point : memory.of(Tier::Device)) {
    most_parameters = std::max(most_parameters, point.bytes[static_cast<std::size_t>(Role::Parameter)]);
    most_activations = std::max(most_activations, point.bytes[static_cast<std::size_t>(Role::Activation)]);
  }
  EXPECT_GE(most_parameters, whole);
  EXPECT_LE(most_activations, activations);
  EXPECT_LT(activations, whole) << "else this shows nothing";
}

}  // namespace
}  // namespace tandem::testing
