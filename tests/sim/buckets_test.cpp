// Gradients of several layers in one all-reduce: whole simulated runs, against closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kMB = 1'000'000;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Eight layers of 1 MB that take 100 us forward, backward and to update. Rings of two: 10 GB/s, so 100 us a layer, and
// a latency.
Scenario small_layers(std::int64_t bucket_bytes, std::int64_t latency_us) {
  Scenario s = layers_scenario("resident", kGiB, 8, kMB, 100 * kUs, 100 * kUs, 100 * kUs);
  s.machine.collective_latency_ns = latency_us * kUs;
  s.workload.devices = 2;
  if (bucket_bytes > 0) s.workload.parallel["bucket"] = bucket_bytes;
  return s;
}

double step_us(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median * 1e6;
}

// Forwards 800 us; backwards to the first full bucket; then one all-reduce after another; updates 800 us, the lowest
// layer's first, whose gradient comes last.
TEST(GradientBuckets, PayTheLatencyOnceABucket) {
  const std::int64_t latency = 1000;
  EXPECT_NEAR(step_us(small_layers(0, latency)), 800 + 100 + 8 * (1000 + 100) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(kMB, latency)), 800 + 100 + 8 * (1000 + 100) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(2 * kMB, latency)), 800 + 200 + 4 * (1000 + 200) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(4 * kMB, latency)), 800 + 400 + 2 * (1000 + 400) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(8 * kMB, latency)), 800 + 800 + (1000 + 800) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(100 * kMB, latency)), 800 + 800 + (1000 + 800) + 800, 0.01);
}

// One bucket of all gradients overlaps nothing, one a layer pays for each: what PyTorch's default is for.
TEST(GradientBuckets, OverlapTheBackward) {
  const std::int64_t latency = 100;
  EXPECT_NEAR(step_us(small_layers(0, latency)), 800 + 100 + 8 * (100 + 100) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(4 * kMB, latency)), 800 + 400 + 2 * (100 + 400) + 800, 0.01);
  EXPECT_NEAR(step_us(small_layers(8 * kMB, latency)), 800 + 800 + (100 + 800) + 800, 0.01);
}

// A bucket that is not quite full takes one more layer: three, three, and the two that are left.
TEST(GradientBuckets, HaveAtLeastTheirBytes) {
  const Scenario scenario = small_layers(5 * kMB / 2, 10);
  Simulation simulation(scenario);
  simulation.run();
  std::vector<std::size_t> gradients;
  const Graph& graph = simulation.graph(0);
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.step == 0 && op.engine == Engine::Collective) {
      gradients.push_back(op.writes.size());
      EXPECT_EQ(op.reads.size(), op.writes.size());
      EXPECT_EQ(graph.work_of(op).sizes,
                (std::vector<std::int64_t>{static_cast<std::int64_t>(op.writes.size()) * kMB / 2, 2}));
    }
  EXPECT_EQ(gradients, (std::vector<std::size_t>{3, 3, 2}));
}

// Clipping takes norms of means: they do not hold up the backward. Eight norms of 1 MB at 1 TB/s are 1 us each.
TEST(GradientBuckets, NormsDoNotHoldUpTheBackward) {
  Scenario s = gpt_scenario("resident", kGiB, 8);
  s.workload.devices = 2;
  s.optimizer.clip_norm = 1;
  s.machine.collective_latency_ns = 50 * kUs;
  const double each = step_us(s);
  s.workload.parallel["bucket"] = 200'000;
  const double buckets = step_us(s);
  EXPECT_LT(buckets, 0.7 * each);
}

TEST(GradientBuckets, EveryPolicyKeepsBytesInOrder) {
  int runs = 0;
  for (const PolicyEntry* policy : policies())
    for (const double clip_norm : {0.0, 1.0}) {
      Scenario s = gpt_scenario(std::string(policy->name), 8 << 20);
      s.workload.devices = 3;
      s.workload.micro_batches = 2;
      s.workload.precision = clip_norm > 0 ? DType::F16 : DType::F32;
      s.workload.parallel["bucket"] = std::int64_t{300'000};
      s.optimizer.clip_norm = clip_norm;
      s.truth.noise = 0.3;
      std::unique_ptr<Simulation> simulation;
      try {
        simulation = std::make_unique<Simulation>(s);
      } catch (const ConfigError&) {  // a policy that cannot
        continue;
      }
      for (const CheckedRank& rank : run_checked(*simulation)) {
        EXPECT_EQ(rank.violation, "") << policy->name;
        EXPECT_GT(rank.checked, 100) << policy->name;
      }
      ++runs;
    }
  EXPECT_GE(runs, 2 * 18);
}

TEST(GradientBuckets, FoldToTheSameTime) {
  for (const std::int64_t stages : {1, 2}) {
    Scenario s = gpt_scenario("resident", kGiB, 8);
    s.workload.devices = 4 / stages;
    s.workload.micro_batches = 4;
    s.parallel.pipeline = stages;
    s.workload.parallel["bucket"] = std::int64_t{300'000};
    s.machine.collective_latency_ns = 20 * kUs;
    const double unfolded = step_us(s);
    s.parallel.fold = true;
    EXPECT_NEAR(step_us(s), unfolded, 1e-6 * unfolded) << stages;
  }
}

TEST(GradientBuckets, AreNotOfDividedStates) {
  Scenario s = small_layers(kMB, 0);
  s.workload.partition = "states";
  try {
    Simulation simulation(s);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("parallel.bucket"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tandem::testing
