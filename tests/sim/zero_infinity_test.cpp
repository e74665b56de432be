// ZeRO-Infinity's overlap in simulated time, by arithmetic on a stack of four layers and a disk of 1 GB/s.
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
// Of parameters: 64 ms from disk to host, 6.4 ms on to the device. The states of such a layer take 384 ms each way.
constexpr std::int64_t kLayerBytes = 64'000'000;
constexpr std::int64_t kForward = 100 * kMs, kBackward = 200 * kMs, kUpdate = 400 * kMs;

Scenario four_layers(std::map<std::string, std::string> options) {
  Scenario scenario =
      layers_scenario("zero_infinity", std::int64_t{1} << 30, 4, kLayerBytes, kForward, kBackward, kUpdate);
  scenario.machine = round_machine(std::int64_t{1} << 30, std::int64_t{1} << 40, std::int64_t{1} << 40);
  scenario.policy.options = std::move(options);
  return scenario;
}

std::int64_t step_ns(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  std::map<CommandId, std::int32_t> steps;
  std::map<std::int32_t, std::int64_t> ends;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = steps.find(event.command); found != steps.end()) ends[found->second] = event.finished.ns;
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute)
        steps[command.id] = simulation.graph().op(command.op).step;
  }
  return ends.at(2) - ends.at(1);
}

// With all on the host: 4 x (100 + 200) ms of computing, then, once the last gradient is there (6.4 ms), 4 x 400 ms of
// updates, and the first parameter comes back (6.4 ms).
constexpr std::int64_t kAllOnHost = 2'812'800'000;

TEST(ZeroInfinity, ParametersHideBehindTheLayersBefore) {
  EXPECT_EQ(step_ns(four_layers({})), kAllOnHost);
  // Only the last one's way to the disk after its update, and the first one's way back, show.
  EXPECT_EQ(step_ns(four_layers({{"parameters", "disk"}})), kAllOnHost + 2 * 64 * kMs);
  // Without prefetching, each pass waits for three more: the layer at the turn is there.
  const std::int64_t way = 70'400'000;
  EXPECT_EQ(step_ns(four_layers({{"parameters", "disk"}, {"prefetch", "0"}})), kAllOnHost + 2 * 64 * kMs + 2 * 3 * way);
  // The last gradient goes to the disk and comes back.
  EXPECT_EQ(step_ns(four_layers({{"parameters", "disk"}, {"gradients", "disk"}})), kAllOnHost + 4 * 64 * kMs);
}

// Simulated time, in ns, during which an op computes and a gradient is on its way to the host.
std::int64_t computing_beside_gradients_ns(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  std::map<CommandId, bool> computes;  // or carries a gradient
  std::vector<Event> ops, gradients;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = computes.find(event.command); found != computes.end())
        (found->second ? ops : gradients).push_back(event);
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute) computes[command.id] = true;
      if (command.kind == CommandKind::Copy && command.lane.kind() == Engine::D2H &&
          simulation.graph().tensor_of(command.part.value).role == Role::Gradient)
        computes[command.id] = false;
    }
  }
  EXPECT_EQ(gradients.size(), 3U * 4U);
  std::int64_t both_ns = 0;
  for (const Event& op : ops)
    for (const Event& gradient : gradients)
      both_ns += std::max(std::int64_t{0}, std::min(op.finished.ns, gradient.finished.ns) -
                                               std::max(op.started.ns, gradient.started.ns));
  return both_ns;
}

TEST(ZeroInfinity, NothingComputesWhileGradientsLeaveByBlockingCopies) {
  for (const char* policy : {"zero_infinity", "zero_offload"}) {
    const auto with = [&](const char* gradient_copies) {
      Scenario scenario = four_layers({{"gradient_copies", gradient_copies}});
      scenario.policy.name = policy;
      return scenario;
    };
    EXPECT_GT(computing_beside_gradients_ns(with("async")), 3 * 3 * 6 * kMs) << policy;
    EXPECT_EQ(computing_beside_gradients_ns(with("blocking")), 0) << policy;
  }
  // Three of four gradients hid behind the backwards below them, for 6.4 ms each.
  EXPECT_EQ(step_ns(four_layers({{"gradient_copies", "blocking"}})), kAllOnHost + 3 * 6'400'000);
}

TEST(ZeroInfinity, StatesAreReadAndWrittenWhileOthersAreUpdated) {
  const auto with = [](const char* buffers) {
    return step_ns(four_layers({{"optimizer_states", "disk"}, {"buffers", buffers}}));
  };
  // One buffer: nothing overlaps but the first read and the backward.
  EXPECT_EQ(with("1"), kAllOnHost + 7 * 384 * kMs);
  // Two, of which the first two reads hide behind the backward; from the first update on, in ms: updates at 0 and 400,
  // the first write from 400 to 784, then the third read and the second write share the disk until 1536. The third
  // update and the fourth read from there, the fourth update from 1936, its write from 2336 to 2720.
  EXPECT_EQ(with("2"), kAllOnHost + (2720 - 4 * 400) * kMs);
  EXPECT_LT(with("3"), with("2"));
}

TEST(ZeroInfinity, WithoutADiskNothingCanLiveThere) {
  Scenario scenario = four_layers({{"optimizer_states", "disk"}});
  scenario.machine = round_machine(std::int64_t{1} << 30);
  try {
    Simulation simulation(scenario);
    FAIL() << "it should be refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "policy.optimizer_states: the machine has no disk; allowed: auto, host");
  }
}

// The four layers' states take 1.536 GB, each update, with its gradient and new parameters, 0.512 GB at once. What is
// left open goes where there is room.
TEST(ZeroInfinity, AHostThatIsSmallerThanTheStatesTrainsThroughTheDisk) {
  Scenario scenario = four_layers({});
  scenario.limits.host_bytes = 1'000'000'000;
  const auto run = run_null(scenario);
  EXPECT_EQ(run.violation, "");
  EXPECT_TRUE(run.scheduler->finished());
  EXPECT_LE(run.scheduler->pool(Tier::HostPinned).peak_bytes(), scenario.limits.host_bytes);
  EXPECT_GE(run.scheduler->pool(Tier::Disk).peak_bytes(), 4 * 6 * kLayerBytes);
}

// A gradient that leaves for the disk is on its way until it is there.
TEST(ZeroInfinity, BlockingCopiesEndWhereMemoryIsTight) {
  for (const char* gradients : {"auto", "disk", "device"})
    for (const int micro_batches : {1, 2}) {
      Scenario scenario = four_layers({{"gradient_copies", "blocking"}, {"gradients", gradients}});
      scenario.limits.host_bytes = 1'000'000'000;
      scenario.workload.micro_batches = micro_batches;
      const auto run = run_null(scenario);
      EXPECT_EQ(run.violation, "") << gradients;
      EXPECT_TRUE(run.scheduler->finished()) << gradients;
    }
}

TEST(ZeroInfinity, GradientsThatWaitOnTheDeviceLeaveTheHostToOneUpdate) {
  const auto with = [](const char* gradients) {
    Scenario scenario = four_layers({{"gradients", gradients}, {"optimizer_states", "disk"}, {"buffers", "1"}});
    scenario.limits.host_bytes = 4 * kLayerBytes + 512'000'000;
    return run_null(scenario);
  };
  // Bytes of parameters and gradients that leave the host for the disk: those of other layers, to make room for one.
  const auto pushed_out = [](const NullRun& run) {
    EXPECT_EQ(run.violation, "");
    std::int64_t bytes = 0;
    for (const auto& entry : run.log.entries())
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Copy && command.target.tier == Tier::Disk &&
            run.scheduler->graph().tensor_of(command.part.value).role != Role::OptimizerState)
          bytes += command.part.bytes;
    return bytes;
  };
  EXPECT_EQ(pushed_out(with("device")), 0);
  EXPECT_GT(pushed_out(with("host")), 0);
}

TEST(ZeroInfinity, AHostThatIsSmallerThanOneUpdateIsTooSmall) {
  Scenario scenario = four_layers({});
  scenario.limits.host_bytes = 500'000'000;
  Simulation simulation(scenario);
  try {
    simulation.run();
    FAIL() << "it should not fit";
  } catch (const DoesNotFit& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("host_pinned memory of rank 0: step0/mb0/layer0.optimizer needs 512000000 bytes"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("would fit in 512000000 bytes"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tandem::testing
