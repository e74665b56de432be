// PatrickStar in simulated time, on eight layers of 64 MB: what moves is what Belady's rule says, and each move and
// each update takes its time alone.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr int kLayers = 8, kSteps = 6;
constexpr std::int64_t kLayerBytes = 64'000'000;  // of parameters, and of gradients: 6.4 ms each way
constexpr std::int64_t kForward = 10 * kMs, kBackward = 20 * kMs, kUpdate = 15 * kMs, kCopy = 6'400'000;
constexpr std::int64_t kComputing = kLayers * (kForward + kBackward);
constexpr std::int64_t kStatesBytes = 6 * kLayerBytes;
constexpr std::int64_t kSmall = 1'000'000;  // activations, holes

// Room for so many chunks beside the gradient that is being made.
Scenario room_for(std::int64_t chunks, std::map<std::string, std::string> options = {}) {
  Scenario scenario = layers_scenario("patrickstar", (chunks + 1) * kLayerBytes + kSmall, kLayers, kLayerBytes,
                                      kForward, kBackward, kUpdate);
  scenario.policy.options = std::move(options);
  scenario.steps = kSteps;
  return scenario;
}

struct Measured {
  std::int64_t step_ns = 0;
  std::map<std::pair<Role, Engine>, std::int64_t> copies;  // of one step, counted in layers
  std::int64_t on_device = 0;                              // updates, of all steps
  std::int64_t of(Role role, Engine engine) const {
    const auto found = copies.find({role, engine});
    return found == copies.end() ? 0 : found->second;
  }
};

// The fourth step's, from the end of the third one's last backward to the end of its own.
Measured measure(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  const Graph& graph = simulation.graph();
  Measured measured;
  std::map<CommandId, OpId> runs;
  std::map<std::int32_t, std::int64_t> ends;  // of backwards, by step
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = runs.find(event.command); found != runs.end())
        ends[graph.op(found->second).step] = event.finished.ns;
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute) {
        const Op& op = graph.op(command.op);
        if (op.phase == Phase::Backward) runs[command.id] = command.op;
        measured.on_device += op.phase == Phase::OptimizerStep;
      }
      if (command.kind != CommandKind::Copy || graph.value(command.part.value).version != 3) continue;
      EXPECT_EQ(command.part.bytes % kLayerBytes, 0);
      measured.copies[{graph.tensor_of(command.part.value).role, command.lane.kind()}] +=
          command.part.bytes / kLayerBytes;
    }
  }
  measured.step_ns = ends.at(3) - ends.at(2);
  return measured;
}

constexpr double kTolerance = 0.002;  // latencies, and activations of 64 bytes

// Each layer's gradient leaves, is the CPU's, and its parameter returns, one after the other.
TEST(PatrickStar, WithRoomForAllParametersOnlyUpdatesMove) {
  const Measured measured = measure(room_for(kLayers, {{"margin_chunks", "0"}}));
  EXPECT_EQ(measured.of(Role::Parameter, Engine::H2D), kLayers);
  EXPECT_EQ(measured.of(Role::Gradient, Engine::D2H), kLayers);
  EXPECT_EQ(measured.of(Role::Gradient, Engine::H2D), 0);
  const auto expected = static_cast<double>(kComputing + kLayers * (kCopy + kUpdate + kCopy));
  EXPECT_NEAR(static_cast<double>(measured.step_ns), expected, kTolerance * expected);
}

// With overlap, copies hide behind updates, but for the first gradient's and the last parameter's.
TEST(PatrickStar, WithOverlapUpdatesHideCopies) {
  const Measured measured = measure(room_for(kLayers, {{"margin_chunks", "0"}, {"overlap", "true"}}));
  const auto expected = static_cast<double>(kComputing + kLayers * kUpdate + 2 * kCopy);
  EXPECT_NEAR(static_cast<double>(measured.step_ns), expected, kTolerance * expected);
}

// With room for five of eight chunks. At the forward's end the last five are there, and the backward fetches the first
// three, for which gradients of the last three, needed again last, have left. So gradients of layers 0 to 4 are on the
// device when Adam runs, and their parameters return to it; the next forward fetches the last three, for which the
// parameters must leave that the backward needs last: 0 to 2.
TEST(PatrickStar, TheChunkThatIsNeededLastLeaves) {
  const Measured measured = measure(room_for(5, {{"margin_chunks", "0"}}));
  EXPECT_EQ(measured.of(Role::Parameter, Engine::H2D), 5 + 3 + 3);
  EXPECT_EQ(measured.of(Role::Gradient, Engine::D2H), kLayers);
  EXPECT_EQ(measured.of(Role::Parameter, Engine::D2H), 0) << "the host has them";
  // In the forward three parameters come; in the backward so do three, each after a gradient has left.
  const std::int64_t expected_ns =
      kComputing + 3 * kCopy + 3 * (kCopy + kCopy) + kLayers * kUpdate + 5 * (kCopy + kCopy);
  const auto expected = static_cast<double>(expected_ns);
  EXPECT_NEAR(static_cast<double>(measured.step_ns), expected, kTolerance * expected);
}

// Where all parameters and gradients fit, states of the first layers do: those updates need no copy.
TEST(PatrickStar, TheMarginHoldsStates) {
  for (const int margin : {0, 1, 3, kLayers}) {
    Scenario scenario = room_for(kLayers);
    scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes += margin * kStatesBytes;
    const Measured measured = measure(scenario);
    EXPECT_EQ(measured.on_device, margin * kSteps);
    EXPECT_EQ(measured.of(Role::Gradient, Engine::D2H), kLayers - margin);
    EXPECT_EQ(measured.of(Role::Parameter, Engine::H2D), kLayers - margin);
  }
}

// Two layers a chunk come and go together.
TEST(PatrickStar, AChunkMovesAsOne) {
  const Measured measured =
      measure(room_for(6, {{"margin_chunks", "0"}, {"chunk_elements", std::to_string(kLayerBytes)}}));
  EXPECT_EQ(measured.of(Role::Parameter, Engine::H2D) % 2, 0);
  EXPECT_EQ(measured.of(Role::Gradient, Engine::D2H), kLayers);
}

}  // namespace
}  // namespace tandem::testing
