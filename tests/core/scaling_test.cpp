// How the scheduler's work grows with the number of layers where tiers are full or nearly so: no faster than n log n.
// Work is counted, not timed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/null_executor.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kBoundless = std::int64_t{1} << 50;

struct Work {
  std::int64_t steps = 0, commands = 0;
  std::array<std::int64_t, kTierCount> peak_bytes{};
  bool fits = true;
};

Work work_of(const Scenario& scenario) {
  struct Counter final : EventLog {
    std::int64_t commands = 0;
    void append(const EventBatch&) override {}
    void append(std::span<const Command> added) override { commands += std::ssize(added); }
  } counter;
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  NullExecutor::Options options;
  options.events_a_wait = 2;  // decisions are taken late, as on a machine
  NullExecutor executor(options);
  Scheduler* ranks[] = {scheduler.get()};
  Work work;
  try {
    drive(ranks, executor, counter);
  } catch (const DoesNotFit&) {
    work.fits = false;
  }
  work.steps = scheduler->search_steps();
  work.commands = counter.commands;
  for (int tier = 0; tier < kTierCount; ++tier)
    work.peak_bytes[static_cast<std::size_t>(tier)] = scheduler->pool(static_cast<Tier>(tier)).peak_bytes();
  return work;
}

// Each tier has so many hundredths of what the run takes of it where it and those below are boundless.
struct Filled {
  const char* policy;
  std::map<std::string, std::string> options;
  std::int64_t device, host, disk;
};

Scenario filled(const Filled& filled, int layers) {
  Scenario scenario = gpt_scenario(filled.policy, kBoundless, layers);
  scenario.workload.precision = DType::BF16;
  scenario.workload.batch = 1;
  scenario.steps = 1;
  scenario.policy.options = filled.options;
  const auto bytes = [&](Tier tier) -> std::int64_t& {
    return scenario.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes;
  };
  bytes(Tier::HostPinned) = bytes(Tier::Disk) = kBoundless;
  for (const auto& [tier, percent] : {std::pair{Tier::Device, filled.device}, std::pair{Tier::HostPinned, filled.host},
                                      std::pair{Tier::Disk, filled.disk}})
    bytes(tier) = work_of(scenario).peak_bytes[static_cast<std::size_t>(tier)] * percent / 100;
  return scenario;
}

class NearlyFull : public ::testing::TestWithParam<Filled> {};

// Steps of searches, or what so many a command would be: few searches may become many where a tier becomes full.
double work(const Work& w) {
  constexpr double kFewSteps = 50;
  return std::max(static_cast<double>(w.steps), kFewSteps * static_cast<double>(w.commands));
}

TEST_P(NearlyFull, WorkGrowsNoFasterThanLayersTimesTheirLogarithm) {
  constexpr int kLayers = 32;
  // Four times as many layers may take 11 times as much: a search of all blocks for each layer would take 16 times.
  constexpr double kSlack = 2;
  const Work few = work_of(filled(GetParam(), kLayers));
  const auto at_most = [&](double times) {
    return kSlack * work(few) * times * std::log(times * kLayers) / std::log(kLayers);
  };
  for (const int times : {2, 4}) {
    const Work more = work_of(filled(GetParam(), times * kLayers));
    EXPECT_EQ(more.fits, few.fits);
    EXPECT_LE(work(more), at_most(times))
        << few.steps << " steps and " << few.commands << " commands became " << more.steps << " and " << more.commands;
  }
}

// Terabytes of states on a disk that can almost, or not quite, hold them.
TEST(FullDisk, TakesNoMoreThanTheLayersThatStillFit) {
  const auto work_of_layers = [](int layers) {
    return work_of(parse_scenario(
        "machine: dgx2_v100\nworkload: {family: gpt, layers: " + std::to_string(layers) +
            ", hidden: 18432, heads: 128, vocabulary: 50257, sequence: 1024, batch: 1, precision: fp16,"
            " attention: unfused, linear_tiles: 2, recompute: block}\n"
            "policy: {name: zero_infinity, parameters: disk, gradients: disk, optimizer_states: disk}\nsteps: 1\n",
        "test"));
  };
  const Work half = work_of_layers(230);
  for (const int layers : {440, 459, 464, 490, 510}) {
    const Work more = work_of_layers(layers);
    EXPECT_LE(work(more), 3 * 2 * work(half)) << layers << " layers: " << more.steps << " steps and " << more.commands
                                              << " commands, half of them " << half.steps << " and " << half.commands;
  }
}

const std::map<std::string, std::string> kAllOnDisk = {
    {"parameters", "disk"}, {"gradients", "disk"}, {"optimizer_states", "disk"}};
// Homes that are chosen may differ from size to size where little is left, and the work with them.
const std::map<std::string, std::string> kStatesOnDisk = {
    {"parameters", "host"}, {"gradients", "host"}, {"optimizer_states", "disk"}};

INSTANTIATE_TEST_SUITE_P(
    Policies, NearlyFull,
    ::testing::Values(Filled{"on_demand", {}, 100, 100, 100}, Filled{"on_demand", {}, 80, 90, 97},
                      Filled{"on_demand", {}, 60, 100, 90}, Filled{"on_demand", {{"optimizer", "cpu"}}, 100, 100, 100},
                      Filled{"on_demand", {{"optimizer", "cpu"}}, 80, 90, 97},
                      Filled{"on_demand", {{"optimizer", "cpu"}}, 60, 80, 100},
                      Filled{"zero_offload", {}, 100, 100, 100}, Filled{"zero_offload", {}, 80, 100, 100},
                      Filled{"zero_offload", {}, 60, 100, 100}, Filled{"cotrain", {}, 100, 100, 100},
                      Filled{"cotrain", {}, 80, 100, 100}, Filled{"cotrain", {{"separation", "0"}}, 60, 100, 100},
                      Filled{"split_update", {}, 80, 100, 100}, Filled{"balanced", {}, 100, 100, 100},
                      Filled{"balanced", {}, 60, 100, 100}, Filled{"deep_optimizer_states", {}, 60, 100, 100},
                      Filled{"stronghold", {}, 100, 100, 100}, Filled{"stronghold", {}, 60, 100, 100},
                      Filled{"zero_infinity", {}, 100, 100, 100}, Filled{"zero_infinity", {}, 80, 90, 100},
                      Filled{"zero_infinity", kStatesOnDisk, 60, 80, 97},
                      Filled{"zero_infinity", kAllOnDisk, 100, 100, 100},
                      Filled{"zero_infinity", kAllOnDisk, 80, 90, 97}, Filled{"zero_infinity", kAllOnDisk, 60, 80, 92},
                      Filled{"mlp_offload", {}, 80, 90, 100}, Filled{"mlp_offload", {}, 60, 80, 97},
                      Filled{"ssdtrain", {}, 100, 100, 100}, Filled{"protrain", {}, 60, 100, 100},
                      Filled{"l2l", {}, 80, 90, 97}, Filled{"l2l", {{"optimizer", "device"}}, 60, 80, 100}),
    [](const ::testing::TestParamInfo<Filled>& filling) {
      std::string name = filling.param.policy;
      for (const auto& [option, value] : filling.param.options) name += "_" + option + "_" + value;
      for (const std::int64_t percent : {filling.param.device, filling.param.host, filling.param.disk})
        name += "_" + std::to_string(percent);
      return name;
    });

}  // namespace
}  // namespace tandem::testing
