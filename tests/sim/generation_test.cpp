// Generating in simulated time, on a machine of round numbers.
#include "tests/common/generation.hpp"

#include <gtest/gtest.h>

#include "analysis/analysis.hpp"
#include "core/scenario/text_lengths.hpp"
#include "sim/simulate.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRoomy = std::int64_t{1} << 30;

Analysis analysed(Simulation& simulation) {
  simulation.run();
  return analyse(simulation.record());
}

// Nothing overlaps where each layer's weights come, and wait: a step is the copies and the kernels, one after another.
TEST(Generation, WhatBlocksTakesTheSumOfCopiesAndKernels) {
  Scenario s = generating_scenario("accelerate", kRoomy);
  s.workload.micro_batches = 1;
  Simulation simulation(s);
  const Analysis a = analysed(simulation);
  double copied = 0, computed = 0;
  for (const LaneReport& lane : a.lanes) {
    if (lane.lane.kind() == Engine::H2D) copied += static_cast<double>(lane.use.busy_ns);
    if (lane.lane.kind() == Engine::Compute) computed += static_cast<double>(lane.use.busy_ns);
  }
  const double steps = static_cast<double>(a.steps.times_ns.size());
  EXPECT_NEAR((copied + computed) * 1e-9 / steps, a.generated->token_s, 0.02 * a.generated->token_s);
}

// 4 blocks of 12 x 64 x 64 weights and their biases and norms come for each token; the embedding, which the head
// shares, twice: at 10 GB/s.
TEST(Generation, FlexGenIsHeldByWhatComes) {
  Scenario s = generating_scenario("flexgen", kRoomy);
  s.machine.h2d.bytes_per_s = 1e7;
  Simulation simulation(s);
  const Analysis a = analysed(simulation);
  ASSERT_TRUE(a.generated);
  std::int64_t bytes = 0;
  for (const LaneReport& lane : a.lanes)
    if (lane.lane.kind() == Engine::H2D) bytes += lane.use.bytes;
  const double each = static_cast<double>(bytes) / 6 / 1e7;  // the first step's prompt among them
  EXPECT_NEAR(a.generated->token_s, each, 0.05 * each);
  EXPECT_EQ(a.holder.cause, "h2d");
}

TEST(Generation, TokensOfAllTextsCount) {
  const Scenario s = generating_scenario("resident", kRoomy);
  Simulation simulation(s);
  const Analysis a = analysed(simulation);
  ASSERT_TRUE(a.generated);
  const Generated& of = *a.generated;
  EXPECT_NEAR(of.tokens_per_s, 36 / (of.first_token_s + 5 * of.token_s), 1e-6 * of.tokens_per_s);
  EXPECT_NEAR(of.later_tokens_per_s, 6 / of.token_s, 1e-6 * of.later_tokens_per_s);
}

// 9 of 42 tokens of prompts are padding, and 17 of 36 new ones come after an end; 13 of later steps do not.
TEST(Generation, WhatPadsAndWhatComesAfterAnEndCountsForNobody) {
  Scenario s = generating_scenario("resident", kRoomy);
  s.workload.generate[kPromptLengths] = std::vector<std::int64_t>{7, 2, 6, 5, 7, 6};
  s.workload.generate[kOutputLengths] = std::vector<std::int64_t>{6, 1, 1, 2, 6, 3};
  Simulation simulation(s);
  const Analysis a = analysed(simulation);
  ASSERT_TRUE(a.generated && a.generated->unused);
  const Generated& of = *a.generated;
  EXPECT_DOUBLE_EQ(of.unused->of_prompts, 9.0 / 42);
  EXPECT_DOUBLE_EQ(of.unused->of_new_tokens, 17.0 / 36);
  EXPECT_NEAR(of.tokens_per_s, 19 / (of.first_token_s + 5 * of.token_s), 1e-6 * of.tokens_per_s);
  EXPECT_NEAR(of.later_tokens_per_s, 13 / (5 * of.token_s), 1e-6 * of.later_tokens_per_s);
  EXPECT_NEAR(a.tokens_per_s * a.step_s.median, 13.0 / 5, 1e-6);
}

// Queries cross the bus in place of the cache.
TEST(Generation, AttentionOnTheCpuLeavesTheCacheOnTheHost) {
  const auto brought = [](const char* on_cpu) {
    Scenario s = generating_scenario("flexgen", kRoomy);
    s.workload.keys["sequence"] = 512, s.workload.generate["prompt"] = 400;
    s.policy.options = {{"wg", "100"}, {"cg", "0"}, {"cpu_attention", on_cpu}};
    Simulation simulation(s);
    const Analysis a = analysed(simulation);
    std::int64_t bytes = 0;
    for (const LaneReport& lane : a.lanes)
      if (lane.lane.kind() == Engine::H2D) bytes += lane.use.bytes;
    return bytes;
  };
  EXPECT_GT(brought("false"), 10 * brought("true"));
}

TEST(Generation, TheSameAgainIsTheSameLog) {
  const auto log = [] {
    Scenario s = generating_scenario("flexgen", std::int64_t{1} << 20);
    s.policy.options = {{"cg", "50"}, {"hg", "0"}};
    Simulation simulation(s);
    simulation.run();
    return analyse(simulation.record()).run.makespan_ns;
  };
  EXPECT_EQ(log(), log());
}

// A step is a part of each image. Weights come once a step for both batches, at 10 MB/s.
TEST(Denoising, WeightsComeOnceAStep) {
  Scenario s = denoising_scenario("flexgen", kRoomy);
  s.policy.options = {{"wg", "0"}};
  s.machine.h2d.bytes_per_s = 1e7;
  Simulation simulation(s);
  const Analysis a = analysed(simulation);
  ASSERT_TRUE(a.generated);
  const Generated& of = *a.generated;
  EXPECT_NEAR(of.images_per_s, 6 / (of.first_token_s + 5 * of.token_s), 1e-6 * of.images_per_s);
  EXPECT_NEAR(a.samples_per_s, 1 / of.token_s, 1e-3 * a.samples_per_s);
  EXPECT_EQ(a.tokens_per_s, 0);
  const double each = 4 * static_cast<double>(a.parameters) / 1e7;
  EXPECT_NEAR(of.token_s, each, 0.05 * each);
  EXPECT_EQ(a.holder.cause, "h2d");
}

}  // namespace
}  // namespace tandem::testing
