// MLP-Offload's alternating order in simulated time: which states the host keeps between steps, what the disk moves,
// and what that saves, by arithmetic on a stack of eight layers and a disk of 1 GB/s.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "sim/simulate.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kLayers = 8;
constexpr std::int32_t kSteps = 4;
// Of parameters, and of gradients. The states of such a layer take 384 ms each way.
constexpr std::int64_t kLayerBytes = 64'000'000, kStateBytes = 6 * kLayerBytes;
constexpr std::int64_t kCopy = 6'400'000;  // of parameters or gradients over the bus
constexpr std::int64_t kForward = 100 * kMs, kBackward = 200 * kMs, kUpdate = 10 * kMs;

Scenario eight_layers(const std::string& policy, std::map<std::string, std::string> options) {
  Scenario scenario =
      layers_scenario(policy, std::int64_t{2} << 30, int{kLayers}, kLayerBytes, kForward, kBackward, kUpdate);
  scenario.machine = round_machine(std::int64_t{2} << 30, std::int64_t{1} << 40, std::int64_t{1} << 40);
  scenario.policy.options = std::move(options);
  scenario.steps = kSteps;
  return scenario;
}

Scenario keeping(const std::string& buffers) {
  return eight_layers("mlp_offload", {{"optimizer_states", "disk"}, {"buffers", buffers}});
}

using Layers = std::vector<std::int32_t>;

struct Outcome {
  std::map<std::int32_t, Layers> updated;                             // by step, in order
  std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> read;  // bytes of states for a step's update, by layer
  std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> written;
  std::int64_t parameters_written = 0, gradients_written = 0;
  std::map<std::int32_t, std::int64_t> step_ns;  // from the end of the last step's updates to that of this one's
};

void count_copy(const Graph& graph, const Command& command, Outcome& outcome) {
  if (command.lane.kind() != Engine::DiskRead && command.lane.kind() != Engine::DiskWrite) return;
  const Tensor& tensor = graph.tensor_of(command.part.value);
  const std::int32_t made = graph.op(graph.value(command.part.value).producer).step;
  const bool read = command.lane.kind() == Engine::DiskRead;
  if (tensor.role == Role::OptimizerState)
    (read ? outcome.read[made + 1] : outcome.written[made])[tensor.layer] += command.part.bytes;
  if (tensor.role == Role::Parameter && !read && made != kNone) outcome.parameters_written += command.part.bytes;
  if (tensor.role == Role::Gradient) outcome.gradients_written += command.part.bytes;
}

Outcome run(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  Outcome outcome;
  std::map<CommandId, std::int32_t> updates;
  std::map<std::int32_t, std::int64_t> ends;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = updates.find(event.command); found != updates.end())
        ends[found->second] = std::max(ends[found->second], event.finished.ns);
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Copy) count_copy(simulation.graph(), command, outcome);
      if (command.kind != CommandKind::Run || command.lane.kind() != Engine::CpuOptimizer) continue;
      const Op& op = simulation.graph().op(command.op);
      outcome.updated[op.step].push_back(op.layer);
      updates[command.id] = op.step;
    }
  }
  for (std::int32_t step = 1; step < kSteps; ++step) outcome.step_ns[step] = ends.at(step) - ends.at(step - 1);
  return outcome;
}

std::map<std::int32_t, std::int64_t> states_of(const Layers& layers) {
  std::map<std::int32_t, std::int64_t> bytes;
  for (const std::int32_t layer : layers) bytes[layer] = kStateBytes;
  return bytes;
}

TEST(MlpOffload, TheOrderOfUpdatesAlternates) {
  const Layers up = {0, 1, 2, 3, 4, 5, 6, 7}, down = {7, 6, 5, 4, 3, 2, 1, 0};
  EXPECT_EQ(run(keeping("3")).updated, (std::map<std::int32_t, Layers>{{0, up}, {1, down}, {2, up}, {3, down}}));
}

TEST(MlpOffload, WhatStaysOnTheHostIsNeitherWrittenNorRead) {
  Outcome three = run(keeping("3"));
  EXPECT_EQ(three.read[0], states_of({0, 1, 2, 3, 4, 5, 6, 7})) << "nothing stayed before the first";
  EXPECT_EQ(three.written[0], states_of({0, 1, 2, 3, 4}));
  EXPECT_EQ(three.read[1], states_of({0, 1, 2, 3, 4}));
  EXPECT_EQ(three.written[1], states_of({3, 4, 5, 6, 7}));
  EXPECT_EQ(three.read[2], states_of({3, 4, 5, 6, 7}));
  EXPECT_EQ(three.written[2], states_of({0, 1, 2, 3, 4}));
  EXPECT_EQ(three.gradients_written, 0);
  // With a buffer for each, the disk is read once and not written again.
  Outcome all = run(keeping("8"));
  EXPECT_EQ(all.read.size(), 1u);
  for (std::int32_t step = 0; step < kSteps; ++step) EXPECT_TRUE(all.written[step].empty());
}

// Parameters that live on disk go there after each update, whatever stays.
TEST(MlpOffload, OnlyStatesStay) {
  Scenario scenario = keeping("3");
  scenario.policy.options["parameters"] = "disk";
  Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.parameters_written, kSteps * kLayers * kLayerBytes);
  EXPECT_EQ(outcome.written[2], states_of({0, 1, 2, 3, 4}));
}

// Computing takes 2400 ms, the last gradient 6.4 more. The update phase begins when the last backward is issued, at
// 2000. From then on ZeRO-Infinity, on the same homes, keeps the disk busy with eight reads and writes of 384 ms each.
TEST(MlpOffload, SavesTheTimeOfWhatStays) {
  const Scenario infinity =
      eight_layers("zero_infinity", {{"parameters", "device"}, {"gradients", "host"}, {"optimizer_states", "disk"}});
  EXPECT_EQ(run(infinity).step_ns[3], (2000 + 8 * 2 * 384) * kMs);
  // From the last layer to the first: the disk is idle until the first update, of 10 ms. It reads and writes five, and
  // the last update follows the last read.
  Outcome three = run(keeping("3"));
  EXPECT_EQ(three.step_ns[3], (2000 + 10 + 5 * 2 * 384 + 10) * kMs);
  // From the first layer to the last, the first update waits for the last gradient, and the forward waited for the
  // first layer's parameter, which was updated last.
  EXPECT_EQ(three.step_ns[2], (2400 + 10 + 5 * 2 * 384 + 10) * kMs + 2 * kCopy);
  // All stay: only the update of the last gradient shows.
  EXPECT_EQ(run(keeping("8")).step_ns[3], (2400 + 10) * kMs + kCopy);
}

// Gradients take 512 MB of the host, an update 448 MB with its own.
TEST(MlpOffload, KeepsAsManyAsTheHostHasRoomFor) {
  Scenario scenario = eight_layers("mlp_offload", {});
  scenario.limits.host_bytes = kLayers * kLayerBytes + 5 * (kStateBytes + kLayerBytes);
  Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.read[2].size(), 3u);
  --scenario.limits.host_bytes;
  outcome = run(scenario);
  EXPECT_EQ(outcome.read[2].size(), 4u);
  scenario.limits.host_bytes = 2 * kLayers * kStateBytes;
  EXPECT_TRUE(run(scenario).read.empty()) << "all live on the host";
}

// However short the host is: a run ends, or says what it lacks.
TEST(MlpOffload, NoHostIsTooSmallButForOneUpdate) {
  int trained = 0;
  for (std::int64_t bytes = 100'000'000; bytes < 3'000'000'000; bytes += 100'000'000) {
    Scenario scenario = keeping("4");
    scenario.limits.host_bytes = bytes;
    try {
      const auto run = run_null(scenario);
      EXPECT_EQ(run.violation, "");
      EXPECT_TRUE(run.scheduler->finished());
      EXPECT_LE(run.scheduler->pool(Tier::HostPinned).peak_bytes(), bytes);
      ++trained;
    } catch (const DoesNotFit& error) {
      EXPECT_LT(bytes, 1'100'000'000) << error.what();
    }
  }
  EXPECT_GT(trained, 15);
}

TEST(MlpOffload, WithoutADiskNothingCanLiveThere) {
  Scenario scenario = keeping("3");
  scenario.machine = round_machine(std::int64_t{1} << 30);
  try {
    Simulation simulation(scenario);
    FAIL() << "it should be refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "policy.optimizer_states: the machine has no disk; allowed: auto, host");
  }
}

}  // namespace
}  // namespace tandem::testing
