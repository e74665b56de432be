// ZeRO-Offload in simulated time, on eight layers of 64 MB: the CPU updates them one by one after the backward, or,
// delayed, under the next step.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr int kLayers = 8;
constexpr std::int64_t kLayerBytes = 64'000'000;  // of parameters, and of gradients: 6.4 ms each way
constexpr std::int64_t kForward = 10 * kMs, kBackward = 20 * kMs, kUpdate = 15 * kMs, kCopy = 6'400'000;
constexpr std::int64_t kComputing = kLayers * (kForward + kBackward);
constexpr double kTolerance = 0.002;  // latencies, and activations of 64 bytes

// The fourth step's time, from the end of the third one's last backward to the end of its own.
double step_ns(bool delayed) {
  Scenario scenario =
      layers_scenario("zero_offload", std::int64_t{1} << 34, kLayers, kLayerBytes, kForward, kBackward, kUpdate);
  scenario.policy.options = {{"delayed_update", delayed ? "true" : "false"}};
  scenario.steps = 5;
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph();
  std::map<CommandId, std::int32_t> step_of;
  std::map<std::int32_t, std::int64_t> ends;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = step_of.find(event.command); found != step_of.end())
        ends[found->second] = event.finished.ns;
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute)
        step_of[command.id] = graph.op(command.op).step;
  }
  return static_cast<double>(ends.at(3) - ends.at(2));
}

// The first layer's gradient comes last; then all updates, and the last one's parameters travel back.
TEST(ZeroOffload, TheNextForwardWaitsForAllUpdates) {
  const double expected = kComputing + kCopy + kLayers * kUpdate + kCopy;
  EXPECT_NEAR(step_ns(false), expected, kTolerance * expected);
}

TEST(ZeroOffload, ADelayedUpdateIsHiddenByTheNextStep) {
  EXPECT_NEAR(step_ns(true), kComputing, kTolerance * kComputing);
}

}  // namespace
}  // namespace tandem::testing
