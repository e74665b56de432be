// STRONGHOLD's window: the arithmetic by hand, and what the policy keeps on the device.
#include "core/policies/stronghold/window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/errors.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using testing::gpt_scenario;
using testing::run_null;

std::vector<LayerTimes> equal_layers(std::size_t count, const LayerTimes& times) {
  return std::vector<LayerTimes>(count, times);
}

TEST(Window, HidesCopiesOfEqualLayersByHand) {
  // Parameters come in behind 10 of forward a layer, gradients leave behind 20 of backward.
  const auto with = [](std::int64_t parameter_ns, std::int64_t gradient_ns) {
    return equal_layers(
        12, {.forward_ns = 10, .backward_ns = 20, .gradient_copy_ns = gradient_ns, .parameter_copy_ns = parameter_ns});
  };
  EXPECT_EQ(choose_window(with(10, 20), 1, 12), 2u);
  EXPECT_EQ(choose_window(with(11, 20), 1, 12), 3u);
  EXPECT_EQ(choose_window(with(35, 20), 1, 12), 5u);  // behind 4 x 10
  EXPECT_EQ(choose_window(with(10, 41), 1, 12), 4u);  // behind 3 x 20
  EXPECT_EQ(choose_window(with(1000, 20), 1, 7), 7u) << "no window that fits hides it";
  EXPECT_EQ(choose_window(with(1000, 20), 1, 12), 12u) << "nothing travels where all layers stay";
}

TEST(Window, HidesUpdatesBehindAStep) {
  const auto layers = equal_layers(10, {.forward_ns = 10, .backward_ns = 20, .cpu_update_ns = 50});
  EXPECT_EQ(choose_window(layers, 1, 10), 4u);  // 6 x 50 in 10 x 30
  EXPECT_EQ(choose_window(layers, 2, 10), 2u);  // two micro-batches compute for twice as long
}

std::int64_t copied(const testing::NullRun& run, Role role, Tier to) {
  std::int64_t bytes = 0;
  const Graph& graph = run.scheduler->graph();
  for (const auto& entry : run.log.entries())
    for (const Command& command : entry.commands)
      if (command.kind == CommandKind::Copy && command.target.tier == to &&
          graph.tensor_of(command.part.value).role == role)
        bytes += command.part.bytes;
  return bytes;
}

TEST(Stronghold, AWiderWindowTakesMoreMemoryAndFewerCopies) {
  std::int64_t peak = 0, gradients = std::numeric_limits<std::int64_t>::max();
  for (const char* window : {"2", "4", "8"}) {
    Scenario scenario = gpt_scenario("stronghold", std::int64_t{1} << 30, /*layers=*/12);
    scenario.policy.options["window"] = window;
    const auto run = run_null(scenario);
    EXPECT_EQ(run.violation, "");
    EXPECT_GT(run.scheduler->pool(Tier::Device).peak_bytes(), peak);
    EXPECT_LT(copied(run, Role::Gradient, Tier::HostPinned), gradients);
    peak = run.scheduler->pool(Tier::Device).peak_bytes();
    gradients = copied(run, Role::Gradient, Tier::HostPinned);
  }
}

TEST(Stronghold, AWindowOfAllLayersIsPlainTraining) {
  Scenario scenario = gpt_scenario("stronghold", std::int64_t{1} << 30);
  scenario.policy.options["window"] = "100";
  const auto run = run_null(scenario);
  EXPECT_EQ(run.violation, "");
  EXPECT_EQ(copied(run, Role::Gradient, Tier::HostPinned), 0);
  EXPECT_EQ(copied(run, Role::Parameter, Tier::HostPinned), 0);
}

TEST(Stronghold, ChoosesAWindowThatFits) {
  for (std::int64_t kib = 2048; kib >= 1024; kib -= 128) {
    Scenario scenario = gpt_scenario("stronghold", kib << 10);
    scenario.machine.h2d.bytes_per_s = 1e6;  // nothing hides copies
    EXPECT_EQ(run_null(scenario).violation, "") << kib;
  }
}

TEST(Stronghold, RefusesAWindowThatCannotSlide) {
  for (const char* window : {"1", "-3", "wide"}) {
    Scenario scenario = gpt_scenario("stronghold", std::int64_t{1} << 30);
    scenario.policy.options["window"] = window;
    EXPECT_THROW(run_null(scenario), ConfigError) << window;
  }
}

}  // namespace
}  // namespace tandem
