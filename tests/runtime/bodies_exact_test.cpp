// Bodies, run op by op, train exactly as whole-graph autograd does: every loss and every parameter equal to the bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/transforms/delayed_update.hpp"
#include "runtime/reference/reference.hpp"
#include "runtime/torch_setup.hpp"
#include "tests/runtime/serial_interpreter.hpp"
namespace tandem {
namespace {

constexpr int kThreads = 2;
constexpr std::int64_t kBytes = 256;

Scenario scenario_of(const std::string& family) {
  Scenario s;
  s.machine.cores = kThreads;
  s.steps = 6;
  s.seed = 11;
  WorkloadOptions& w = s.workload;
  w.family = family;
  w.keys["layers"] = 2, w.keys["hidden"] = 48, w.keys["heads"] = 3, w.keys["vocabulary"] = kBytes + 1,
  w.keys["sequence"] = 40, w.batch = 3;
  w.keys["inputs"] = 61, w.keys["classes"] = 10;
  s.optimizer.weight_decay = 0.01;
  return s;
}

// Positions of differences say more than the first difference alone.
void expect_same(const std::string& name, const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size()) << name;
  std::size_t differing = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(expected[i])) {
      if (differing++ == 0) first = i;
    }
  EXPECT_EQ(differing, 0u) << name << ": " << differing << " of " << got.size() << " differ, first " << first << ": "
                           << got[first] << " instead of " << expected[first];
}

void expect_exact(const Scenario& scenario, bool delayed = false, int parts = 1) {
  make_torch_deterministic();
  set_thread_count(kThreads);
  const HashedData data(kBytes);
  const ReferenceResult reference = train_reference(scenario, data, {.delayed_update = delayed});
  SerialInterpreter interpreter(scenario, data, delayed ? Rewrites{delayed_update()} : Rewrites{}, parts);
  interpreter.run();
  std::vector<double> expected;
  for (const auto& step : reference.losses) expected.insert(expected.end(), step.begin(), step.end());
  const std::vector<std::int64_t>& losses = interpreter.results("head.forward");
  ASSERT_EQ(losses.size(), expected.size());
  ASSERT_TRUE(std::isfinite(expected.back()));
  EXPECT_NE(expected.front(), expected.back()) << "nothing was learnt";
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_EQ(losses[i], std::bit_cast<std::int64_t>(expected[i]))
        << "loss " << i << ": " << std::bit_cast<double>(losses[i]) << " instead of " << expected[i];
  const auto parameters = interpreter.parameters();
  ASSERT_EQ(parameters.size(), reference.parameters.size());
  for (const auto& [name, values] : reference.parameters) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    expect_same(name, parameters.at(name), values);
  }
}

struct Case {
  std::string name;
  std::function<void(Scenario&)> change;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::string case_name(const ::testing::TestParamInfo<std::tuple<std::string, Case>>& test) {
  return std::get<0>(test.param) + "_" + std::get<1>(test.param).name;
}

class Exact : public ::testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(Exact, EqualsWholeGraphAutograd) {
  const auto& [family, change] = GetParam();
  Scenario scenario = scenario_of(family);
  change.change(scenario);
  expect_exact(scenario);
}

const Case kCases[] = {
    {"plain", [](Scenario&) {}},
    {"untied", [](Scenario& s) { s.workload.keys["tied_embedding"] = false; }},
    {"accumulation2", [](Scenario& s) { s.workload.micro_batches = 2; }},
    {"accumulation4_untied",
     [](Scenario& s) {
       s.workload.micro_batches = 4;
       s.workload.keys["tied_embedding"] = false;
     }},
    {"accumulation3", [](Scenario& s) { s.workload.micro_batches = 3; }},
    {"recompute", [](Scenario& s) { s.workload.recompute = "block"; }},
    {"clip", [](Scenario& s) { s.optimizer.clip_norm = 0.5; }},
    {"clip_high", [](Scenario& s) { s.optimizer.clip_norm = 1e6; }},
    {"unfused", [](Scenario& s) { s.workload.keys["attention"] = "unfused"; }},
    {"unfused_all",
     [](Scenario& s) {
       s.workload.keys["attention"] = "unfused";
       s.workload.micro_batches = 2;
       s.workload.recompute = "block";
       s.workload.checkpoint_every = 2;
       s.workload.keys["sequence"] = 200;
       s.workload.batch = 1;
     }},
    {"adam", [](Scenario& s) { s.optimizer.name = "adam"; }},
    {"all",
     [](Scenario& s) {
       s.workload.micro_batches = 4;
       s.workload.recompute = "block";
       s.optimizer.clip_norm = 0.1;
       s.workload.keys["sequence"] = 200;  // another tile size of the fused attention
       s.workload.batch = 1;
     }},
};

INSTANTIATE_TEST_SUITE_P(Transformers, Exact,
                         ::testing::Combine(::testing::Values("gpt", "bert"), ::testing::ValuesIn(kCases)), case_name);

const Case kPerceptronCases[] = {
    {"plain", [](Scenario&) {}},
    {"one_layer", [](Scenario& s) { s.workload.keys["layers"] = 1; }},
    {"four_layers_accumulation2_clip",
     [](Scenario& s) {
       s.workload.keys["layers"] = 4;
       s.workload.micro_batches = 2;
       s.optimizer.clip_norm = 0.05;
     }},
    {"big_batch", [](Scenario& s) { s.workload.batch = 130; }},
};

INSTANTIATE_TEST_SUITE_P(Perceptrons, Exact,
                         ::testing::Combine(::testing::Values("mlp"), ::testing::ValuesIn(kPerceptronCases)),
                         case_name);

TEST(ExactRun, DelayedUpdate) {
  Scenario scenario = scenario_of("gpt");
  expect_exact(scenario, /*delayed=*/true);
  scenario.optimizer.clip_norm = 0.3;
  scenario.workload.micro_batches = 2;
  expect_exact(scenario, /*delayed=*/true);
}

TEST(ExactRun, OptimizerPartsEqualWhole) {
  Scenario scenario = scenario_of("gpt");
  scenario.workload.keys["hidden"] = 45;  // fields whose last vector is partial
  for (const int parts : {2, 7}) expect_exact(scenario, /*delayed=*/false, parts);
  scenario.optimizer.clip_norm = 0.3;
  expect_exact(scenario, /*delayed=*/true, /*parts=*/5);
}

}  // namespace
}  // namespace tandem
