// Balanced in simulated time: how states return, and which updates get more of the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/analysis.hpp"
#include "core/run/load.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Blocks of 50 million parameters, an embedding and a head of 17, on a device with room for all of it.
Scenario large() {
  Scenario scenario = testing::gpt_scenario("balanced", std::int64_t{1} << 36);
  WorkloadOptions& w = scenario.workload;
  w.keys["hidden"] = 2048, w.keys["heads"] = 16, w.keys["vocabulary"] = 8192, w.keys["sequence"] = 256,
  w.keys["tied_embedding"] = false;
  w.precision = DType::BF16;
  scenario.policy.options = {{"resident_buckets", "0"}};
  return scenario;
}

struct Copies {
  std::map<ValueId, std::int64_t> bytes;  // of states, by value
  std::int64_t count = 0, largest = 0;
};

Copies copies_of_states(const Simulation& run, Engine lane) {
  Copies copies;
  for (const auto& entry : run.log().entries())
    for (const Command& command : entry.commands) {
      const ValueId value = command.part.value;
      if (command.kind != CommandKind::Copy || command.lane.kind() != lane) continue;
      if (run.graph().tensor_of(value).role != Role::OptimizerState) continue;
      copies.bytes[value] += command.part.bytes;
      copies.largest = std::max(copies.largest, command.part.bytes);
      ++copies.count;
    }
  return copies;
}

TEST(Balanced, StatesReturnInPieces) {
  const Scenario scenario = large();
  Simulation run(scenario);
  run.run();
  const Graph& graph = run.graph();
  const Copies in = copies_of_states(run, Engine::H2D), out = copies_of_states(run, Engine::D2H);
  EXPECT_GT(out.count, 2 * in.count);
  EXPECT_LE(out.largest, 17 * kMiB);  // 8 MiB of the first write, with a remainder
  // All that came, but for the last step's: with its last update the run ends.
  for (const auto& [value, bytes] : in.bytes) {
    const Value& old = graph.value(value);
    const auto next = std::find_if(out.bytes.begin(), out.bytes.end(), [&](const auto& entry) {
      return graph.value(entry.first).tensor == old.tensor && graph.value(entry.first).version == old.version + 1;
    });
    if (old.version + 1 < 3) {
      ASSERT_NE(next, out.bytes.end()) << graph.value_name(value);
      EXPECT_EQ(next->second, bytes) << graph.value_name(value);
    }
  }
}

// While there is nothing to update, the head's states are brought ahead of its gradient: the device gets more of them
// than of any block's.
TEST(Balanced, TheDeviceGetsMoreOfWhatTheCpuHasToWaitFor) {
  const Scenario scenario = large();
  Simulation run(scenario);
  run.run();
  const Graph& graph = run.graph();
  std::map<std::int32_t, double> moved, all;  // by layer
  for (const auto& [value, bytes] : copies_of_states(run, Engine::H2D).bytes) {
    moved[graph.tensor_of(value).layer] += static_cast<double>(bytes);
    all[graph.tensor_of(value).layer] += static_cast<double>(graph.value(value).bytes);
  }
  ASSERT_EQ(moved.size(), 6u);
  for (std::int32_t layer = 0; layer < 5; ++layer) EXPECT_GT(moved[5] / all[5], moved[layer] / all[layer]) << layer;
}

double steady_step_s(const std::vector<std::string>& overrides) {
  const Scenario scenario = load_scenario(source_path("scenarios/h200_gpt_1_4b.yaml"), overrides);
  Simulation run(scenario);
  run.run();
  return analyse(run.record()).steady_step_s;
}

// Where room is short, gradients leave instead of states.
TEST(Balanced, WithMoreDeviceMemoryAStepIsHardlyLonger) {
  const std::vector<std::string> common = {"machine=h200_measured", "limits.host_bytes=40GiB", "workload.loss_tiles=8",
                                           "steps=4"};
  const auto with = [&](const std::string& device, const std::string& policy) {
    std::vector<std::string> overrides = common;
    overrides.push_back("limits.device_bytes=" + device);
    overrides.push_back("policy=" + policy);
    return steady_step_s(overrides);
  };
  double before = with("8GiB", "{name: balanced, resident_buckets: 0}") * 0.9;
  for (const char* device : {"8GiB", "10GiB", "12GiB", "16GiB", "24GiB"}) {
    const double step = with(device, "{name: balanced}");
    EXPECT_LE(step, before * 1.05) << device;
    before = step;
  }
}

// When an op of the step began, or the last of its updates ended: of a layer's forward, of the CPU's updates.
struct Turn {
  std::int64_t forward_starts_ns = 0, updates_end_ns = 0;
};

Turn turn_after(const Simulation& run, std::int32_t step, std::int32_t layer) {
  std::map<CommandId, OpId> updates, forwards;
  Turn turn;
  for (const auto& entry : run.log().entries()) {
    for (const Event& event : entry.batch.events) {
      if (updates.contains(event.command)) turn.updates_end_ns = std::max(turn.updates_end_ns, event.finished.ns);
      if (forwards.contains(event.command)) turn.forward_starts_ns = event.started.ns;
    }
    for (const Command& command : entry.commands) {
      if (command.kind != CommandKind::Run) continue;
      const Op& op = run.graph().op(command.op);
      if (command.lane.kind() == Engine::CpuOptimizer && op.step == step) updates[command.id] = command.op;
      if (op.phase == Phase::Forward && op.step == step + 1 && op.layer == layer) forwards[command.id] = command.op;
    }
  }
  return turn;
}

// 9.67 billion parameters that fill the device: activations have to leave, but return in time, so that the backward
// runs ahead of the updates, which go on during the next forward.
TEST(Balanced, UpdatesGoOnDuringTheNextForward) {
  const Scenario scenario = load_scenario(
      source_path("scenarios/h200_gpt_4b.yaml"),
      {"machine=h200_measured", "policy={name: balanced}", "workload.layers=46", "workload.hidden=4096",
       "workload.heads=32", "workload.loss_tiles=8", "limits.device_bytes=24GiB", "limits.host_bytes=112GiB"});
  Simulation run(scenario);
  run.run();
  constexpr std::int32_t kMiddle = 23;
  const Turn turn = turn_after(run, 1, kMiddle);
  EXPECT_GT(turn.forward_starts_ns, 0);
  EXPECT_GT(turn.updates_end_ns, turn.forward_starts_ns);
}

}  // namespace
}  // namespace tandem
