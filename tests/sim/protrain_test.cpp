// ProTrain in simulated time, by arithmetic on a stack of eight layers.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/policies/protrain/chunks.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr int kLayers = 8;
constexpr std::int64_t kLayerBytes = 64'000'000;  // of parameters: 6.4 ms each way
constexpr std::int64_t kForward = 10 * kMs, kBackward = 20 * kMs, kUpdate = 15 * kMs, kCopy = 6'400'000;

Scenario eight_layers(std::map<std::string, std::string> options, std::int64_t update_ns = kUpdate) {
  Scenario scenario =
      layers_scenario("protrain", std::int64_t{1} << 34, kLayers, kLayerBytes, kForward, kBackward, update_ns);
  scenario.policy.options = std::move(options);
  scenario.steps = 6;
  return scenario;
}

struct Measured {
  std::int64_t step_ns = 0;
  std::int64_t parameters_up = 0;  // bytes, of one step
};

Measured measure(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph();
  std::map<CommandId, std::int32_t> steps;
  std::map<std::int32_t, std::int64_t> ends, up;  // by step, and by version
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = steps.find(event.command); found != steps.end()) ends[found->second] = event.finished.ns;
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute)
        steps[command.id] = graph.op(command.op).step;
      if (command.kind == CommandKind::Copy && command.lane.kind() == Engine::H2D &&
          graph.tensor_of(command.part.value).role == Role::Parameter)
        up[graph.value(command.part.value).version] += command.part.bytes;
    }
  }
  return {ends.at(4) - ends.at(3), up[3]};
}

std::int64_t predicted(const Scenario& scenario, std::size_t persistent, std::size_t buffers) {
  const WorkloadOptions& w = scenario.workload;
  const std::vector<LayerTimes> layers(
      kLayers, {.forward_ns = w.keys.integer("forward"),
                .backward_ns = w.keys.integer("backward"),
                .gradient_copy_ns = kCopy,
                .cpu_update_ns = w.keys.integer("optimizer"),
                .device_update_ns = w.keys.integer("optimizer"),
                .parameter_copy_ns = static_cast<std::int64_t>(kLayerBytes / scenario.machine.h2d.bytes_per_s * 1e9)});
  return chunked_step_ns(layers, {w.micro_batches, false}, {persistent, buffers});
}

std::map<std::string, std::string> layout(std::size_t persistent, std::size_t buffers) {
  return {{"persistent_chunks", std::to_string(persistent)}, {"chunk_buffers", std::to_string(buffers)}};
}

TEST(ProTrain, AllPersistentIsPlainTraining) {
  Scenario resident = eight_layers({});
  resident.policy.name = "resident";
  const Measured plain = measure(resident), persistent = measure(eight_layers({{"persistent_chunks", "8"}}));
  EXPECT_EQ(plain.step_ns, kLayers * (kForward + kBackward + kUpdate));
  EXPECT_EQ(persistent.step_ns, plain.step_ns);
  EXPECT_EQ(persistent.parameters_up, 0);
}

TEST(ProTrain, WhatBuffersHoldAtTheTurnIsNotFetchedAgain) {
  for (const std::int64_t persistent : {0, 3})
    for (const std::int64_t buffers : {1, 2, 4, 8}) {
      Scenario scenario = eight_layers(layout(static_cast<std::size_t>(persistent), static_cast<std::size_t>(buffers)));
      const std::int64_t streamed = kLayers - persistent, again = std::max<std::int64_t>(streamed - buffers, 0);
      EXPECT_EQ(measure(scenario).parameters_up, (streamed + again) * kLayerBytes) << persistent << ' ' << buffers;
      // Nor is what they hold when the next micro-batch begins.
      scenario.workload.batch = scenario.workload.micro_batches = 3;
      EXPECT_EQ(measure(scenario).parameters_up, (streamed + 5 * again) * kLayerBytes) << persistent << ' ' << buffers;
    }
}

// 8 x 30 ms of computing; the last gradient leaves (6.4), is used for the last update (15), whose parameter comes back
// (6.4).
TEST(ProTrain, UpdatesHideUnderTheBackward) {
  EXPECT_EQ(measure(eight_layers(layout(0, 4))).step_ns, kLayers * (kForward + kBackward) + kCopy + kUpdate + kCopy);
  // With the first two persistent, whose backward, updates and forward go on meanwhile, only their updates are added.
  EXPECT_EQ(measure(eight_layers(layout(2, 4))).step_ns, kLayers * (kForward + kBackward) + 2 * kUpdate);
}

TEST(ProTrain, StepsTakeWhatTheCostModelSays) {
  for (const std::int64_t update_ns : {5 * kMs, 40 * kMs})
    for (const std::size_t persistent : {0, 1, 4, 7})
      for (const std::size_t buffers : {1, 2, 8})
        for (const double bytes_per_s : {1e10, 2e9})
          for (const std::int64_t passes : {1, 2, 6}) {
            Scenario scenario = eight_layers(layout(persistent, buffers), update_ns);
            scenario.machine.h2d.bytes_per_s = bytes_per_s;
            scenario.workload.batch = scenario.workload.micro_batches = passes;
            const auto measured = static_cast<double>(measure(scenario).step_ns);
            // Six passes are reckoned from four.
            EXPECT_NEAR(static_cast<double>(predicted(scenario, persistent, buffers)), measured,
                        passes > 4 ? 0.1 * measured : 1e-4 * measured)
                << update_ns << ' ' << persistent << ' ' << buffers << ' ' << bytes_per_s << ' ' << passes;
          }
}

}  // namespace
}  // namespace tandem::testing
