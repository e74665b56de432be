// LSP-Offload in simulated time: what travels is what the method leaves, updates go first come, first served until the
// backward is over, then lowest layer first, and a forward waits for its own layer's change alone.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/base/errors.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/run/policies.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kMs = 1'000'000;

// Bytes of a role that were copied between two tiers.
std::int64_t copied_bytes(const Simulation& simulation, Role role, Tier from, Tier to) {
  std::int64_t bytes = 0;
  for (const auto& entry : simulation.log().entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Copy && command.source.tier == from && command.target.tier == to &&
          simulation.graph().tensor_of(command.part.value).role == role)
        bytes += command.part.bytes;
  return bytes;
}

// Width 64, so d = 32: a block has 4 matrices of 32 x 32, biases of 192 + 64 + 256 + 64 and norms of 4 x 64; the token
// embedding is one of 32 x 32, positions (32 x 64) are no larger than d; the head is a norm of 2 x 64. In fp32.
constexpr std::int64_t kBlockNumbers = 4 * 1024 + 576 + 256, kEmbeddingNumbers = 1024 + 2048, kHeadNumbers = 128;

TEST(LspOffload, OnlyTheSubspaceTravels) {
  Scenario scenario = gpt_scenario("lsp_offload", 64 * kMiB, /*layers=*/4);
  scenario.steps = 5;
  scenario.policy.options["check_every"] = "2";  // at steps 0, 2 and 4
  Simulation simulation(scenario);
  simulation.run();
  constexpr std::int64_t kProjected = (4 * kBlockNumbers + kEmbeddingNumbers) * 4, kAll = kProjected + kHeadNumbers * 4;
  EXPECT_EQ(copied_bytes(simulation, Role::Gradient, Tier::Device, Tier::HostPinned), 5 * kAll);
  EXPECT_EQ(copied_bytes(simulation, Role::Gradient, Tier::HostPinned, Tier::Device), 5 * kAll);
  // Moments follow a projector on the device.
  EXPECT_EQ(copied_bytes(simulation, Role::OptimizerState, Tier::Device, Tier::HostPinned), 6 * kProjected);
}

// Ends of the first step's updates and begins of the second's forwards, by layer, and the updates' order.
struct Schedule {
  std::vector<std::int32_t> updates;
  std::map<std::int32_t, std::int64_t> updated_ns, forward_ns;
};

Schedule schedule_of(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  Schedule schedule;
  std::map<CommandId, OpId> ops;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events) {
      const auto found = ops.find(event.command);
      if (found == ops.end()) continue;
      const Op& op = simulation.graph().op(found->second);
      if (op.step == 0 && op.may_run_on(Engine::CpuOptimizer)) {
        schedule.updates.push_back(op.layer);
        schedule.updated_ns[op.layer] = event.finished.ns;
      }
      if (op.step == 1 && op.phase == Phase::Forward) schedule.forward_ns[op.layer] = event.started.ns;
    }
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run) ops[command.id] = command.op;
  }
  return schedule;
}

// A backward of 8 x 2 ms is over when the CPU, at 20 ms an update, has begun with the highest layer and has the next
// one queued.
TEST(LspOffload, TheLowestLayersGoFirstOnceTheBackwardIsOver) {
  const Schedule schedule = schedule_of(layers_scenario("lsp_offload", 1024 * kMiB, 8, kMiB, kMs, 2 * kMs, 20 * kMs));
  EXPECT_EQ(schedule.updates, (std::vector<std::int32_t>{7, 6, 0, 1, 2, 3, 4, 5}));
  for (std::int32_t layer = 0; layer < 5; ++layer) {
    EXPECT_GT(schedule.forward_ns.at(layer), schedule.updated_ns.at(layer));
    EXPECT_LT(schedule.forward_ns.at(layer), schedule.updated_ns.at(layer + 1)) << "it waits for no other layer";
  }
}

TEST(LspOffload, AFastCpuServesInTheOrderOfTheBackward) {
  const Schedule schedule = schedule_of(layers_scenario("lsp_offload", 1024 * kMiB, 8, kMiB, kMs, 2 * kMs, kMs));
  EXPECT_EQ(schedule.updates, (std::vector<std::int32_t>{7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(LspOffload, WrongOptionsAreInputErrors) {
  const auto refuses = [](const std::string& name, const std::string& text, const std::string& message) {
    Scenario scenario = gpt_scenario("lsp_offload", kMiB);
    scenario.policy.options[name] = text;
    try {
      find_policy("lsp_offload")->make(scenario);
      ADD_FAILURE() << name << " " << text << " is taken";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), "policy." + name + ": '" + text + "' is not allowed; allowed: " + message);
    }
  };
  refuses("rank", "0", "a whole number from 1 to 32767");
  refuses("rank", "a", "a whole number from 1 to 32767");
  refuses("nonzeros", "33", "a whole number from 1 to 32");
  refuses("check_every", "0", "a whole number from 1 to 1000000000");
  refuses("masters", "maybe", "true, false");
  for (const char* text : {"-0.1", "1.5", "nan", "0.2x"}) refuses("threshold", text, "a number from 0 to 1");
  Scenario scenario = gpt_scenario("lsp_offload", kMiB);
  scenario.workload.precision = DType::F16;
  EXPECT_THROW(find_policy("lsp_offload")->make(scenario), ConfigError);
  scenario.workload.precision = DType::BF16;
  scenario.optimizer.weight_decay = 0.1;
  EXPECT_NO_THROW(find_policy("lsp_offload")->make(scenario));
  scenario.optimizer.name = "adam";
  EXPECT_THROW(find_policy("lsp_offload")->make(scenario), ConfigError);
}

}  // namespace
}  // namespace tandem::testing
