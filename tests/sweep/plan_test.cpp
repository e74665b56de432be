// Sweeps' files: which combinations they make, and what is wrong with them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "core/base/errors.hpp"
#include "sweep/plan_file.hpp"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string path_of(const std::string& name) { return ::testing::TempDir() + std::to_string(::getpid()) + name; }
const std::string kPath = path_of("plan_test.yaml");

SweepPlan plan_of(const std::string& text) {
  std::ofstream(kPath) << text;
  return read_sweep(kPath, {"cotrain", "resident"}, {"step_s", "tokens_per_s"});
}

SweepPlan with_axis(const std::string& axis) { return plan_of("base: b.yaml\nsweep:\n  " + axis + "\n"); }

std::vector<std::string> labels(const std::string& axis) {
  const SweepPlan plan = with_axis(axis);
  std::vector<std::string> all;
  for (const AxisValue& value : plan.axes.front().values) all.push_back(value.label);
  return all;
}

std::string refusal(const std::string& text) {
  try {
    plan_of(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SweepPlan, ListsRangesAndKeysThatChangeTogether) {
  EXPECT_THAT(labels("workload.batch: [1, 2, 4]"), ElementsAre("1", "2", "4"));
  EXPECT_THAT(labels("workload.batch: 3..5"), ElementsAre("3", "4", "5"));
  EXPECT_THAT(labels("workload.batch: {from: 1, to: 70, factor: 2}"),
              ElementsAre("1", "2", "4", "8", "16", "32", "64"));
  EXPECT_THAT(labels("limits.device_bytes: {from: 8GiB, to: 24GiB, step: 8GiB}"),
              ElementsAre("8GiB", "16GiB", "24GiB"));
  EXPECT_THAT(labels("optimizer.weight_decay: {from: 0.1, to: 0.3, step: 0.1}"), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(labels("workload.hidden: {from: 1000, to: 1000000, factor: 10}"),
              ElementsAre("1000", "10000", "100000", "1000000"));
  EXPECT_THAT(labels("policy: all"), ElementsAre("cotrain", "resident"));
  EXPECT_THAT(labels("policy: [{name: cotrain, separation: 3}]"), ElementsAre("{name: cotrain, separation: 3}"));
  EXPECT_THAT(labels("size: {together: [{workload.layers: 12, workload.hidden: 768}]}"),
              ElementsAre("layers 12, hidden 768"));
}

TEST(SweepPlan, CombinationsInOrderTheLastVariesFastest) {
  const SweepPlan plan = plan_of(
      "base: b.yaml\nsweep:\n  policy.separation: [1, 2]\n  policy: [cotrain, resident]\n  size: {together: [{a: 1, b: "
      "'x y'}]}\n");
  ASSERT_EQ(plan.count(), 4u);
  // A part of the policy after the policy, whatever the order of the axes.
  EXPECT_THAT(plan.settings_of(3, "cotrain"),
              ElementsAre("policy={name: resident}", "a=1", "b=\"x y\"", "policy.separation=2"));
  // The base's own policy keeps its options.
  EXPECT_THAT(plan.settings_of(0, "cotrain"), ElementsAre("a=1", "b=\"x y\"", "policy.separation=1"));
}

TEST(SweepPlan, TheBaseIsANameAPathOrAMap) {
  EXPECT_EQ(plan_of("base: demo\nsweep: {a: [1]}").base, "demo");
  EXPECT_EQ(plan_of("base: {machine: h100}\nsweep: {a: [1]}").base, kPath + "#base");
  const std::string beside = path_of("beside.yaml");
  std::ofstream(beside) << "a: 1\n";
  EXPECT_EQ(plan_of("base: " + beside.substr(beside.rfind('/') + 1) + "\nsweep: {a: [1]}").base, beside);
}

TEST(SweepPlan, TheRest) {
  const SweepPlan plan = plan_of(
      "base: b\nsweep: {a: [1]}\nlargest: {workload.layers: 2..90}\nconstraint: [a < 2, a > 0]\nfigures: "
      "[tokens_per_s]\n");
  EXPECT_EQ(plan.largest.key, "workload.layers");
  EXPECT_EQ(plan.largest.high, 90);
  EXPECT_EQ(plan.constraints.size(), 2u);
  EXPECT_THAT(plan.figures, ElementsAre("tokens_per_s"));
}

TEST(SweepPlan, EveryErrorHasItsLine) {
  EXPECT_THAT(refusal("base: b\nsweeps: {a: [1]}\n"),
              AllOf(HasSubstr("plan_test.yaml:2:1: sweeps: is not a key of a sweep, did you mean 'sweep'?"),
                    HasSubstr("sweep: is missing")));
  const std::vector<std::array<std::string, 2>> axes{
      {"a: []", "3:3: sweep.a: has no values"},
      {"a: 5", "sweep.a: is '5'"},
      {"a: [1, 1]", "'1' is there twice"},
      {"a: 9..3", "LOW is above HIGH"},
      {"a: 1..99999", "has 99999 values"},
      {"a: {from: 1, to: 5}", "needs a step or a factor"},
      {"a: {from: 1, to: 5, stepp: 1}", "did you mean 'step'?"},
      {"a: {from: 1GiB, to: 5GB, step: 1GiB}", "mixes units"},
      {"a: {from: 0, to: 5, factor: 2}", "never gets from one to the other"},
      {"a: {from: 1, to: 5, step: 0}", "never gets from one to the other"},
      {"a: {from: 1, to: 1e9, step: 1e-9}", "values"},
      {"a: {from: x, to: 5, step: 1}", "is no number"},
      {"a: {together: [5]}", "holds '5'"},
      {"a: {together: []}", "is a list"},
      {"policy: [cotran]", "there is no policy 'cotran', did you mean 'cotrain'?"},
      {"x: {together: [{policy: nix}]}", "there is no policy 'nix'"}};
  for (const auto& [axis, problem] : axes)
    EXPECT_THAT(refusal("base: b\nsweep:\n  " + axis + "\n"), HasSubstr(problem)) << axis;
  EXPECT_THAT(refusal("base: b\nsweep:\n  a: [1]\n  b: {together: [{a: 2}]}\n"), HasSubstr("'a' varies twice"));
  EXPECT_THAT(refusal("base: b\nsweep: {a: [1]}\nlargest: {a: 1..2}\n"), HasSubstr("sweep.a: is the key of largest"));
  EXPECT_THAT(refusal("base: b\nsweep: {a: [1]}\nlargest: {policy.k: 1..2}\n"), HasSubstr("is no size"));
  EXPECT_THAT(refusal("base: b\nsweep: {a: [1]}\nfigures: [step_]\n"), HasSubstr("did you mean 'step_s'?"));
  EXPECT_THAT(refusal("base: b\nsweep: {a: [1]}\nconstraint: a <\n"), HasSubstr("3:13: constraint: "));
  EXPECT_THAT(refusal("base: [1]\nsweep: {a: [1]}\n"), HasSubstr("1:7: base: is a list"));
  EXPECT_THAT(refusal("base: b\nsweep: {a: 1..5000, b: 1..5000}\n"), HasSubstr("more than a million combinations"));
}

}  // namespace
}  // namespace tandem
