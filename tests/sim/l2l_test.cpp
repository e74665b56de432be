// L2L in simulated time, on eight layers of 64 MB and four micro-batches: all of them pass through a layer before the
// next, and only the first layer's update is not hidden.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr int kLayers = 8, kMicroBatches = 4;
constexpr std::int64_t kLayerBytes = 64'000'000;  // of parameters, and of gradients: 6.4 ms each way
constexpr std::int64_t kForward = 10 * kMs, kBackward = 20 * kMs, kUpdate = 15 * kMs, kCopy = 6'400'000;
constexpr std::int64_t kComputing = kLayers * kMicroBatches * (kForward + kBackward);
// Visits to layers: forward from the first to the last but one, the last one's both passes, backward to the first.
constexpr int kVisits = 2 * kLayers - 1;
constexpr double kTolerance = 0.002;  // latencies, and activations of 64 bytes

Scenario eight_layers(std::map<std::string, std::string> options, std::int64_t device_bytes = std::int64_t{1} << 34) {
  Scenario scenario = layers_scenario("l2l", device_bytes, kLayers, kLayerBytes, kForward, kBackward, kUpdate);
  scenario.workload.batch = scenario.workload.micro_batches = kMicroBatches;
  scenario.policy.options = std::move(options);
  scenario.steps = 5;
  return scenario;
}

struct Measured {
  std::int64_t step_ns = 0;
  std::vector<OpId> computed;      // forwards and backwards of one step, in order
  std::int64_t parameters_up = 0;  // layers, in one step
  std::int64_t bytes = 0;          // both ways, in one step
};

// The fourth step's, from the end of the third one's last backward to the end of its own.
Measured measure(const Simulation& simulation) {
  const Graph& graph = simulation.graph();
  Measured measured;
  std::map<CommandId, OpId> runs;
  std::map<std::int32_t, std::int64_t> ends;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = runs.find(event.command); found != runs.end())
        ends[graph.op(found->second).step] = event.finished.ns;
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute &&
          graph.op(command.op).phase != Phase::OptimizerStep) {
        runs[command.id] = command.op;
        if (graph.op(command.op).step == 3) measured.computed.push_back(command.op);
      }
      if (command.kind != CommandKind::Copy || graph.value(command.part.value).version != 3) continue;
      const Role role = graph.tensor_of(command.part.value).role;
      if (role == Role::Activation) continue;
      measured.bytes += command.part.bytes;
      if (role == Role::Parameter && command.lane.kind() == Engine::H2D)
        measured.parameters_up += command.part.bytes / kLayerBytes;
    }
  }
  measured.step_ns = ends.at(3) - ends.at(2);
  return measured;
}

Measured run(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return measure(simulation);
}

void expect_ns(const Measured& measured, std::int64_t expected_ns) {
  const auto expected = static_cast<double>(expected_ns);
  EXPECT_NEAR(static_cast<double>(measured.step_ns), expected, kTolerance * expected);
}

// The first layer's gradient leaves, is updated and returns before the next forward.
TEST(L2L, OnlyTheFirstLayersUpdateIsExposed) {
  const Measured measured = run(eight_layers({}));
  expect_ns(measured, kComputing + kCopy + kUpdate + kCopy);
  EXPECT_EQ(measured.parameters_up, kVisits);
}

TEST(L2L, WithoutPrefetchALayerWaitsForItsParameters) {
  expect_ns(run(eight_layers({{"prefetch", "0"}})), kComputing + kVisits * kCopy + kCopy + kUpdate);
}

// States come in while the layer's last backwards run, so that its update follows them at once.
TEST(L2L, UpdatesOnTheDeviceAreComputing) {
  expect_ns(run(eight_layers({{"optimizer", "device"}})), kComputing + kLayers * kUpdate);
}

// Per parameter, 2 bytes twice up; 2 of gradient down; or 12 of states up and down, and 2 of the new parameter down.
// That makes the 28 of ZeRO-Offload's table 3 and those 2, less the second visit to the last layer, and, where the
// device updates it, the first one to the first.
TEST(L2L, MovesWhatZeroOffloadsTableSays) {
  EXPECT_EQ(run(eight_layers({})).bytes, (kVisits + kLayers) * kLayerBytes);
  EXPECT_EQ(run(eight_layers({{"optimizer", "device"}})).bytes, (kVisits - 1 + (6 + 6 + 1) * kLayers) * kLayerBytes);
}

TEST(L2L, AllMicroBatchesPassThroughALayerBeforeTheNext) {
  const Scenario scenario = eight_layers({});
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph();
  const std::vector<OpId> order = measure(simulation).computed;
  ASSERT_EQ(order.size(), 2U * kLayers * kMicroBatches);
  std::size_t next = 0;
  const auto expect = [&](Phase phase, int layer, int micro_batch) {
    const Op& op = graph.op(order[next++]);
    EXPECT_EQ(op.phase, phase);
    EXPECT_EQ(op.layer, layer);
    EXPECT_EQ(op.micro_batch, micro_batch);
  };
  for (int layer = 0; layer + 1 < kLayers; ++layer)
    for (int m = 0; m < kMicroBatches; ++m) expect(Phase::Forward, layer, m);
  for (int m = 0; m < kMicroBatches; ++m) {
    expect(Phase::Forward, kLayers - 1, m);
    expect(Phase::Backward, kLayers - 1, m);
  }
  for (int layer = kLayers - 1; layer-- > 0;)
    for (int m = 0; m < kMicroBatches; ++m) expect(Phase::Backward, layer, m);
}

// The device holds two layers, and gradients of two: those that are added up, and those that leave.
TEST(L2L, DepthTakesNoDeviceMemory) {
  expect_ns(run(eight_layers({}, 4 * kLayerBytes + 1'000'000)), kComputing + kCopy + kUpdate + kCopy);
}

// What blocks need for their backward is on the host in between, but for the layers that compute.
TEST(L2L, StashedActivationsWaitOnTheHost) {
  const auto peak = [](const std::string& stash) {
    Scenario scenario = gpt_scenario("l2l", std::int64_t{1} << 30, 16);
    scenario.workload.precision = DType::BF16;
    scenario.workload.batch = 64;
    scenario.workload.micro_batches = 8;
    scenario.policy.options = {{"stash", stash}};
    return run_null(scenario).scheduler->pool(Tier::Device).peak_bytes();
  };
  const std::int64_t stashed = 64LL * 8 * 32 * 64 * 2;  // sequences, tokens, width, bytes: of each of 16 blocks
  EXPECT_GT(peak("device") - peak("host"), 12 * stashed);
}

}  // namespace
}  // namespace tandem::testing
