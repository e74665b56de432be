// Branches of a network on devices of their own: whole simulated runs against what one device's operations take.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Scenario branches(const std::string& family, std::int64_t devices, const std::string& schedule,
                  std::int64_t micro_batches = 1) {
  Scenario s = gpt_scenario("resident", kGiB);
  s.machine = round_machine(kGiB, kGiB, kGiB);
  s.machine.peer.bytes_per_s = s.machine.h2d.bytes_per_s = s.machine.loader_bytes_per_s = 1e15;  // no time to speak of
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload.batch = 16;
  s.workload.micro_batches = micro_batches;
  s.parallel = {.pipeline = devices, .schedule = schedule};
  s.workload.parallel["cut"] = "branches";
  return s;
}

Scenario on_one_device(Scenario s) {
  s.parallel.pipeline = 1;
  return s;
}

struct Times {
  double forward_s = 0, backward_s = 0, update_s = 0;
};

// What one device's step takes for each branch, by what its modules' names begin with.
std::map<std::string, Times> times_of_branches(const Scenario& scenario, const std::vector<std::string>& names) {
  const Scenario alone = on_one_device(scenario);
  Simulation one(alone);
  one.run();
  const CostModel cost(scenario.machine);
  std::map<std::string, Times> times;
  const Graph& graph = one.graph();
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != 0) continue;
    for (const std::string& name : names) {
      if (!graph.label(op.label).starts_with(name)) continue;
      const double s = static_cast<double>(cost.run_ns(graph, op.work, Engine::Compute)) * 1e-9;
      if (op.phase == Phase::Forward) times[name].forward_s += s;
      if (op.phase == Phase::Backward) times[name].backward_s += s;
      if (op.phase == Phase::OptimizerStep) times[name].update_s += s;
    }
  }
  return times;
}

double step_s(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median;
}

// Three encoders of which each has a device, and the head another one: beside the head, a step takes as long as the
// longest of them, not their sum.
TEST(Branches, AreComputedAtTheSameTime) {
  const Scenario s = branches("trimodal", 4, "gpipe");
  const auto times = times_of_branches(s, {"image_", "audio_", "text_", "head"});
  ASSERT_EQ(times.size(), 4U);
  double longest = 0, sum = 0;
  for (const auto& [name, t] : times) {
    const double all = t.forward_s + t.backward_s + t.update_s;
    if (name != "head") longest = std::max(longest, all);
    sum += all;
  }
  const Times& head = times.at("head");
  const double step = longest + head.forward_s + head.backward_s;
  EXPECT_LT(step, 0.7 * sum);
  EXPECT_NEAR(step_s(s), step, 0.02 * step);
}

// With many micro-batches the longest device is what counts, under either schedule.
TEST(Branches, ManyMicroBatchesTakeTheLongestDevicesTime) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    SCOPED_TRACE(schedule);
    Scenario s = branches("trimodal", 4, schedule, 64);
    double longest = 0;
    for (const auto& [name, t] : times_of_branches(s, {"image_", "audio_", "text_", "head"}))
      longest = std::max(longest, t.forward_s + t.backward_s);
    EXPECT_NEAR(step_s(s), longest, 0.05 * longest);
  }
}

std::int64_t parameter_bytes(const Simulation& simulation) {
  std::int64_t bytes = 0;
  for (Rank rank = 0; rank < simulation.rank_count(); ++rank) {
    const Graph& graph = simulation.graph(rank);
    for (TensorId id = 0; id < graph.tensor_count(); ++id)
      if (graph.tensor(id).role == Role::Parameter) bytes += graph.tensor(id).bytes;
  }
  return bytes;
}

// Runs it under the checks of order and contents; null where it is refused in words.
std::unique_ptr<Simulation> checked(const Scenario& scenario) {
  std::unique_ptr<Simulation> simulation;
  try {
    simulation = std::make_unique<Simulation>(scenario);
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("; allowed: "), std::string::npos) << error.what();
    return nullptr;
  }
  for (const CheckedRank& rank : run_checked(*simulation)) EXPECT_EQ(rank.violation, "");
  return simulation;
}

// All parameters are there, each once; nobody waits for ever, though memory is scarce and times are noisy.
TEST(Branches, EveryFamilyIsDividedWithoutLossOrSaysWhyNot) {
  std::map<std::string, int> divided;
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    for (const char* schedule : {"gpipe", "1f1b"})
      for (const std::int64_t devices : {2, 3, 4}) {
        SCOPED_TRACE(std::string(family->name) + " " + schedule + " " + std::to_string(devices));
        Scenario s = branches(std::string(family->name), devices, schedule, 5);
        s.workload.batch = 2;
        s.machine = round_machine(64 * kMiB, kGiB, kGiB);
        s.policy.name = "on_demand";
        s.truth.noise = 0.3;
        auto run = checked(s);
        if (run == nullptr) continue;
        const std::int64_t bytes = parameter_bytes(*run);
        run.reset();  // one at a time
        ++divided[std::string(family->name)];
        const Scenario one = on_one_device(s);
        Simulation whole(one);
        whole.run();
        EXPECT_EQ(bytes, parameter_bytes(whole));
      }
  }
  for (const char* family : {"trimodal", "clip"}) EXPECT_GE(divided[family], 4) << family;
  EXPECT_EQ(divided["gpt"], 0);
}

}  // namespace
}  // namespace tandem::testing
