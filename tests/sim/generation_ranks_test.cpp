// Generating with a network that ranks divide, in simulated time: what each of them keeps, what crosses between them,
// and how fast tokens come, against one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "analysis/analysis.hpp"
#include "sim/simulate.hpp"
#include "tests/common/generation.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRoomy = std::int64_t{1} << 30;

Scenario divided(const std::string& policy, std::int64_t stages, std::int64_t tensor, std::int64_t batches) {
  Scenario s = generating_scenario(policy, kRoomy);
  s.workload.micro_batches = batches;
  s.workload.tensor = tensor;
  s.parallel.pipeline = stages;
  return s;
}

struct Traffic {
  std::int64_t times = 0, bytes = 0;
};

// Of ops that the rank has with others, of this name or an end of it.
Traffic traffic(const Graph& graph, const std::string& name) {
  Traffic found;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.match_group == kNone || graph.op_name(id).find(name) == std::string::npos) continue;
    ++found.times;
    for (const ValueId read : op.reads) found.bytes += graph.value(read).bytes;
  }
  return found;
}

std::int64_t largest_page(const Graph& graph) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).role == Role::KvCache) bytes = std::max(bytes, graph.tensor(id).bytes);
  return bytes;
}

// 6 tokens of each of 2 batches: hidden states go on for each, tokens go back for all but the last, and the bucket that
// the head shares, of 256 tokens and 32 positions x 64 numbers of 2 bytes, crosses once.
TEST(GenerationRanks, WhatCrossesAPipeline) {
  const Scenario s = divided("petals", 2, 1, 2);
  Simulation simulation(s);
  simulation.run();
  const Graph &first = simulation.graph(0), &last = simulation.graph(1);
  EXPECT_EQ(traffic(first, "weights.sent").times, 1);
  EXPECT_EQ(traffic(first, "weights.sent").bytes, (256 + 32) * 64 * 2);
  EXPECT_EQ(traffic(last, "tokens.sent").times, 5 * 2);
  EXPECT_EQ(traffic(last, "tokens.sent").bytes, 5 * 2 * 3 * 8);
  EXPECT_EQ(traffic(first, "tokens.received").times, 5 * 2);
  const Traffic hidden = traffic(first, "after.sent");
  EXPECT_EQ(hidden.times, 6 * 2);
  EXPECT_EQ(hidden.bytes, 2 * 3 * (7 + 5) * 64 * 2);
}

TEST(GenerationRanks, EachStageKeepsThePagesOfItsLayers) {
  const auto attentions = [](const Graph& graph) {
    std::set<std::int32_t> layers;
    for (OpId id = 0; id < graph.op_count(); ++id)
      if (graph.op(id).may_run_on(Engine::CpuCompute)) layers.insert(graph.op(id).label);
    return layers.size();
  };
  const Scenario s = divided("resident", 2, 1, 1);
  Simulation simulation(s);
  simulation.run();
  EXPECT_EQ(attentions(simulation.graph(0)), 2U);
  EXPECT_EQ(attentions(simulation.graph(1)), 2U);
}

// Queries, keys and values of a rank's heads; of multi-query attention, each rank has the one head of keys.
TEST(GenerationRanks, RanksDivideKeysAndValuesByHeads) {
  const auto page = [](std::int64_t tensor, std::int64_t key_heads) {
    Scenario s = divided("resident", 1, tensor, 1);
    s.workload.keys["key_heads"] = key_heads;
    s.workload.keys["positions"] = "rotary";
    Simulation simulation(s);
    simulation.run();
    return largest_page(simulation.graph(0));
  };
  EXPECT_EQ(2 * page(2, 4), page(1, 4));
  EXPECT_EQ(page(2, 1), page(1, 1));
}

// Each rank gathers all columns of logits: 3 texts x 256, of which it has half.
TEST(GenerationRanks, AChoiceIsOfAllRanksColumns) {
  const Scenario s = divided("resident", 1, 2, 1);
  Simulation simulation(s);
  simulation.run();
  const Traffic logits = traffic(simulation.graph(1), "head");
  EXPECT_EQ(logits.times, 6);
  EXPECT_EQ(logits.bytes, 6 * 3 * 128 * 2);
}

// While one batch is on the second stage another one is on the first: two batches come in hardly more time than one.
TEST(GenerationRanks, TwoBatchesFillTwoStages) {
  const auto analysed = [](std::int64_t stages, std::int64_t batches) {
    Scenario s = divided("petals", stages, 1, batches);
    s.workload.keys["layers"] = 16;
    s.workload.generate["new_tokens"] = s.steps = 20;
    Simulation simulation(s);
    simulation.run();
    return *analyse(simulation.record()).generated;
  };
  const Generated one = analysed(1, 1), alone = analysed(2, 1), both = analysed(2, 2);
  EXPECT_GT(alone.token_s, one.token_s);  // with the way between
  EXPECT_LT(alone.token_s, 1.3 * one.token_s);
  EXPECT_LT(both.token_s, 1.2 * alone.token_s);
  EXPECT_GT(both.tokens_per_s, 1.6 * alone.tokens_per_s);
}

TEST(GenerationRanks, EveryPolicyThatGeneratesDoesSoInAPipeline) {
  for (const char* policy : {"resident", "on_demand", "flexgen", "row_by_row", "accelerate", "deepspeed_inference"}) {
    SCOPED_TRACE(policy);
    Scenario s = divided(policy, 3, 1, 2);
    if (policy == std::string("flexgen")) s.policy.options = {{"wg", "30"}, {"cg", "0"}, {"hg", "0"}};
    Simulation simulation(s);
    simulation.run();
    EXPECT_TRUE(analyse(simulation.record()).generated);
  }
}

}  // namespace
}  // namespace tandem::testing
