// Networks of which some weights are trained alone, or adapters beside them, train as plain autograd does, to the bit;
// what is frozen stays as it is, and has neither gradient nor states.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/base/errors.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

Scenario scenario_of(const std::string& family, const char* policy, std::int64_t micro_batches) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Scenario s = testing::gpt_scenario(policy, 512 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 512 * kMiB;
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload.batch = 3;
  s.workload.micro_batches = micro_batches;
  s.optimizer.clip_norm = micro_batches > 1 ? 0.5 : 0;
  s.steps = 6;
  s.seed = 7;
  return s;
}

std::vector<std::string> weights_of(const Scenario& scenario, bool trained_alone = false) {
  std::vector<std::string> names;
  const Network network = network_of(scenario);
  for (const NetworkModule& m : network.modules)
    for (std::size_t k = 0; k < m.module->weights.size(); ++k)
      if (!trained_alone || m.module->weights[k].trained) names.push_back(m.weight_name(k));
  return names;
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const WorkloadEntry* family : workloads())
    if (family->network != nullptr && family->name != "imported") names.emplace_back(family->name);
  return names;
}

class FrozenWeights : public ::testing::TestWithParam<std::string> {};

// Some in each module, or all, or none.
TEST_P(FrozenWeights, OfAnyFamilyAreLeftOut) {
  for (const std::size_t every : {2U, 3U, 7U}) {
    Scenario s = scenario_of(GetParam(), every == 3 ? "zero_infinity" : "zero_offload", every == 2 ? 1 : 2);
    const std::vector<std::string> names = weights_of(s, /*trained_alone=*/true);  // but what a family itself fixes
    for (std::size_t i = every - 1; i < names.size(); i += every) s.workload.trained.push_back(names[i]);
    if (s.workload.trained.empty()) continue;
    SCOPED_TRACE("every " + std::to_string(every));
    expect_trains_as_reference(s);
  }
}

TEST_P(FrozenWeights, StandBesideAdapters) {
  Scenario s = scenario_of(GetParam(), "zero_offload", 2);
  s.workload.lora = {4, 8, {"*"}};
  std::vector<std::string> names;
  try {
    names = weights_of(s);
  } catch (const ConfigError&) {
    GTEST_SKIP() << "has no linear layer";
  }
  expect_trains_as_reference(s);
  s.workload.trained = {names.front(), "*.bias"};  // adapters, and others beside them
  for (const std::string& name : names)
    if (name.ends_with(".bias")) return expect_trains_as_reference(s);
}

INSTANTIATE_TEST_SUITE_P(Families, FrozenWeights, ::testing::ValuesIn(families()),
                         [](const auto& test) { return test.param; });

TEST(Adapters, HaveStatesAndGradientsAlone) {
  Scenario s = scenario_of("llama", "resident", 1);
  s.workload.recompute = "block";
  s.workload.lora = {4, 8, {"q", "v"}};
  expect_trains_as_reference(s);
  const CostModel estimate(s.machine);
  const auto scheduler = make_scheduler(s, estimate);
  const Graph& graph = scheduler->graph();
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& t = graph.tensor(id);
    if (t.role != Role::Gradient && t.role != Role::OptimizerState) continue;
    ASSERT_TRUE(t.name.starts_with("block")) << t.name;
    // q [48 -> 48] and v [48 -> 16]: fields of 4 x 48, 48 x 4, 4 x 48 and 16 x 4 numbers.
    EXPECT_EQ(t.bytes, (192 + 192 + 192 + 64) * 4) << t.name;
  }
}

TEST(Adapters, AreRefusedWhereTheyMeanNothing) {
  Scenario s = scenario_of("llama", "resident", 1);
  const auto expect_refused = [&](const std::string& what) {
    try {
      network_of(s);
      ADD_FAILURE() << "not refused: " << what;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  s.workload.lora = {4, 8, {"q", "q_proj"}};
  expect_refused(
      "workload.lora.targets.1: \"q_proj\" is no linear layer; allowed: linear layers, here down, gate, k, ");
  s.workload.lora = {};
  s.workload.trained = {"block0.q.weight", "block0.query.weight"};
  expect_refused("workload.trained.1: \"block0.query.weight\" matches no weight");
}

}  // namespace
}  // namespace tandem
