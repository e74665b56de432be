// Pipelines: whole simulated runs against the closed forms of their bubbles, and every family cut to pieces.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Twelve equal layers of 1 ms forward and 2 ms backward, whose updates and copies take no time to speak of.
Scenario twelve_layers(std::int64_t stages, const std::string& schedule, std::int64_t micro_batches,
                       std::int64_t chunks = 1) {
  Scenario s = layers_scenario("resident", 16 * kGiB, 12, 64, kMs, 2 * kMs, 1);
  s.workload.micro_batches = micro_batches;
  s.parallel = {.pipeline = stages, .chunks = chunks, .schedule = schedule};
  s.steps = 4;
  return s;
}

double step_s(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median;
}

// Of a step, what a stage waits: 1 - M / (M + P - 1) for GPipe and 1F1B (Huang et al., 2019; Narayanan et al., 2021),
// (P - 1) / P for one micro-batch after another, 1 - M / (M + (P - 1) / v) for v pieces a stage.
TEST(Pipeline, BubblesAreThoseOfTheClosedForms) {
  constexpr double kAllS = 12 * 3e-3;  // of a micro-batch, over all layers
  constexpr double kNear = 1e-4;       // copies of 64 bytes, updates of 32 numbers
  for (const std::int64_t p : {2, 3, 4})
    for (const std::int64_t m : {2, 4, 12}) {
      SCOPED_TRACE(std::to_string(p) + " stages, " + std::to_string(m) + " micro-batches");
      const auto stages = static_cast<double>(p), micro_batches = static_cast<double>(m);
      const double filled = (micro_batches + stages - 1) * kAllS / stages;
      EXPECT_NEAR(step_s(twelve_layers(p, "gpipe", m)), filled, kNear * filled);
      EXPECT_NEAR(step_s(twelve_layers(p, "1f1b", m)), filled, kNear * filled);
      EXPECT_NEAR(step_s(twelve_layers(p, "hippie", m)), filled, kNear * filled);
      // A third of that, where gradients of inputs and of weights take as long as a forward, 1 ms a layer: ZB-H1 (Qi et
      // al., 2024), (P - 1)(F + B - W) once there are as many micro-batches as stages.
      const double third = (micro_batches + (stages - 1) / 3) * kAllS / stages;
      if (m >= p) {
        EXPECT_NEAR(step_s(twelve_layers(p, "zero_bubble", m)), third, kNear * third);
      }
      EXPECT_NEAR(step_s(twelve_layers(p, "naive", m)), micro_batches * kAllS, kNear * micro_batches * kAllS);
      for (const std::int64_t v : {2, 3}) {
        if (m % p != 0 || 12 % (p * v) != 0) continue;
        const auto chunks = static_cast<double>(v);
        const double interleaved = (micro_batches + (stages - 1) / chunks) * kAllS / stages;
        EXPECT_NEAR(step_s(twelve_layers(p, "interleaved", m, v)), interleaved, kNear * interleaved) << v;
      }
    }
}

// Two stages, one micro-batch: forwards of 6 ms, activations of 64 bytes at 64 kB/s, 1 ms each way, backwards of 12 ms.
TEST(Pipeline, WhatCrossesACutTakesItsTime) {
  Scenario s = twelve_layers(2, "1f1b", 1);
  s.machine.peer.bytes_per_s = 64e3;
  EXPECT_NEAR(step_s(s), 38e-3, 1e-5);
}

// Both copies of the pipeline take as long as one; then each adds up its gradients with the other's.
TEST(Pipeline, BesideDataParallel) {
  Scenario s = twelve_layers(2, "1f1b", 6);
  const double alone = step_s(s);
  s.workload.devices = 2;
  EXPECT_EQ(rank_count(s), 4);
  EXPECT_NEAR(step_s(s), alone, 1e-4 * alone);
}

// Two copies of two stages of six layers, whose gradients take 3 ms a layer to add up, while the next backward takes
// 2 ms. A stage is done 6 * 3 - (6 - 1) * 2 = 8 ms after its last backward. The last one does so while the first one
// still goes backward, for 12 ms: in the bubble. The step waits for the first stage's gradients alone.
TEST(Pipeline, AddsUpGradientsInTheBubble) {
  constexpr std::int64_t kLayerBytes = 65'536;
  for (const char* schedule : {"gpipe", "1f1b", "hippie", "axonn"}) {
    SCOPED_TRACE(schedule);
    Scenario s = twelve_layers(2, schedule, 4);
    s.workload.keys["layer_bytes"] = kLayerBytes;
    s.machine.collective_bytes_per_s = kLayerBytes / 3e-3;
    const double alone = step_s(s);
    s.workload.devices = 2;
    EXPECT_NEAR(step_s(s), alone + 8e-3, 1e-4 * alone);
  }
}

std::int64_t parameter_bytes(const Simulation& simulation, Rank ranks) {
  std::int64_t bytes = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Graph& graph = simulation.graph(rank);
    for (TensorId id = 0; id < graph.tensor_count(); ++id)
      if (graph.tensor(id).role == Role::Parameter) bytes += graph.tensor(id).bytes;
  }
  return bytes;
}

std::int64_t flops(const Simulation& simulation, Rank ranks) {
  std::int64_t flops = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Graph& graph = simulation.graph(rank);
    for (OpId id = 0; id < graph.op_count(); ++id) flops += graph.work_of(graph.op(id)).flops();
  }
  return flops;
}

// Runs it, on as many ranks as it has, under the checks of order and contents; null where it is refused in words.
std::unique_ptr<Simulation> checked(const Scenario& scenario) {
  std::unique_ptr<Simulation> simulation;
  try {
    simulation = std::make_unique<Simulation>(scenario);
  } catch (const ConfigError&) {
    return nullptr;
  }
  const std::vector<CheckedRank> ranks = run_checked(*simulation);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(ranks[rank].violation, "") << "rank " << rank;
  return simulation;
}

Scenario small(const std::string& policy, const WorkloadEntry& family) {
  Scenario s = gpt_scenario(policy, 64 * kMiB);
  s.machine = round_machine(64 * kMiB, kGiB, kGiB);
  s.workload.family = family.name;
  s.workload.keys = family.keys->small_instance();
  s.workload.precision = family.name == "mlp" || family.name == "imported" ? DType::F32 : DType::BF16;
  s.workload.micro_batches = 4;
  s.truth.noise = 0.3;
  return s;
}

// All parameters and all flops of one device's step are there, each once.
TEST(Pipeline, EveryFamilyIsCutWithoutLoss) {
  int cut = 0;
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    Scenario s = small("on_demand", *family);
    auto whole = checked(s);
    ASSERT_NE(whole, nullptr) << family->name;
    const std::int64_t all_parameters = parameter_bytes(*whole, 1), all_flops = flops(*whole, 1);
    whole.reset();  // one at a time
    for (const char* schedule : {"naive", "gpipe", "1f1b", "zero_bubble", "hippie", "axonn", "interleaved"}) {
      SCOPED_TRACE(std::string(family->name) + " " + schedule);
      s.parallel = {.pipeline = 2, .chunks = schedule == std::string("interleaved") ? 2 : 1, .schedule = schedule};
      const auto divided = checked(s);
      if (divided == nullptr) continue;
      EXPECT_EQ(parameter_bytes(*divided, 2), all_parameters);
      EXPECT_EQ(flops(*divided, 2), all_flops);
      ++cut;
    }
  }
  EXPECT_GE(cut, 40);
}

// A stage holds as many micro-batches as the first one of 1F1B. One whose weights' gradients are still to come has the
// gradients that they are made of, instead of what gradients of inputs alone read: in blocks of gpt a little more.
TEST(Pipeline, ZeroBubbleTakesAboutTheMemoryOf1F1B) {
  const auto most = [](const char* schedule) {
    Scenario s = small("resident", *find_workload("gpt"));
    s.workload.keys["layers"] = 8;
    s.workload.micro_batches = 8;
    s.parallel = {.pipeline = 4, .schedule = schedule};
    Simulation simulation(s);
    simulation.run();
    const Analysis analysis = analyse(simulation.record());
    std::int64_t bytes = 0;
    for (const auto& [name, peak] : analysis.peak_bytes)
      if (name.starts_with("device")) bytes = std::max(bytes, peak);
    return bytes;
  };
  const std::int64_t without = most("1f1b"), with = most("zero_bubble"), all = most("gpipe");
  EXPECT_LT(most("hippie"), all);  // of whose stages the last one has most
  EXPECT_LE(with, without + without / 5);
  EXPECT_LT(with, all);
}

// Policies move what a stage has of its own, though memory is scarce.
TEST(Pipeline, EveryPolicyRunsOrSaysWhyNot) {
  std::vector<std::string> ran;
  for (const PolicyEntry* policy : policies())
    for (const std::int64_t mib : {64, 4}) {
      SCOPED_TRACE(std::string(policy->name) + " " + std::to_string(mib) + " MiB");
      Scenario s = small(std::string(policy->name), *find_workload("gpt"));
      s.machine = round_machine(mib * kMiB, kGiB, kGiB);
      s.parallel.pipeline = 3;
      s.workload.keys["layers"] = 6;
      try {
        if (checked(s) != nullptr && mib == 64) ran.emplace_back(policy->name);
      } catch (const DoesNotFit&) {
        EXPECT_LT(mib, 64);
      }
    }
  EXPECT_GE(ran.size(), 12U);
}

}  // namespace
}  // namespace tandem::testing
