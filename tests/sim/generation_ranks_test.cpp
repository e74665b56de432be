// Generating with a network that ranks divide, in simulated time: what each of them keeps, what crosses between them,
// and how fast tokens come, against one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "analysis/analysis.hpp"
#include "sim/simgrid_platform.hpp"
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

// 4 texts of one head of keys, on two ranks that attend to two each.
Scenario by_texts(const char* attention) {
  Scenario s = divided("resident", 1, 2, 1);
  s.workload.batch = 4;
  s.workload.keys["key_heads"] = 1;
  s.workload.keys["positions"] = "rotary";
  s.workload.parallel["attention"] = attention;
  return s;
}

std::int64_t all_flops(const Simulation& simulation) {
  std::int64_t flops = 0;
  for (Rank rank = 0; rank < 2; ++rank)
    for (OpId id = 0; id < simulation.graph(rank).op_count(); ++id) {
      const Op& op = simulation.graph(rank).op(id);
      if (op.step != kNone) flops += simulation.graph(rank).work_of(op).flops();
    }
  return flops;
}

Traffic dealt(const Graph& graph) {
  Traffic found;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    if (graph.work_of(graph.op(id)).body != "all_to_all") continue;
    ++found.times;
    for (const ValueId read : graph.op(id).reads) found.bytes += graph.value(read).bytes;
  }
  return found;
}

// Pope et al., 2022, section 3.3: half of the pages each, and of each token in each of 4 layers a rank's half of
// queries and of what attention makes goes to where its text is, and back: 4 texts x 32 numbers of 2 bytes each way.
// All else is what it was.
TEST(GenerationRanks, RanksDivideSharedKeysByTexts) {
  struct Found {
    std::int64_t page = 0, flops = 0;
    Traffic first, last, head, all;
  };
  const auto found = [](const char* attention) {
    const Scenario s = by_texts(attention);
    Simulation simulation(s);
    simulation.run();
    const Graph &first = simulation.graph(0), &last = simulation.graph(1);
    return Found{largest_page(first), all_flops(simulation),  dealt(first),
                 dealt(last),         traffic(first, "head"), traffic(first, "")};
  };
  const Found heads = found("heads"), batch = found("batch");
  EXPECT_EQ(2 * batch.page, heads.page);
  EXPECT_EQ(batch.flops, heads.flops) << "each product once";
  EXPECT_EQ(heads.first.times, 0);
  constexpr std::int64_t kLayers = 4, kSteps = 6, kTokens = 7 + 5, kTexts = 4;
  for (const Traffic& own : {batch.first, batch.last}) {
    EXPECT_EQ(own.times, 2 * kLayers * kSteps);
    EXPECT_EQ(own.bytes, 2 * kLayers * kTokens * kTexts * 32 * 2);
  }
  EXPECT_EQ(batch.head.bytes, heads.head.bytes);
  EXPECT_EQ(batch.all.bytes, heads.all.bytes + batch.first.bytes) << "all else crosses as it did";
}

// All that a rank gives to others in 6 steps: 12 tokens of each of 3 texts and 2 batches, of 64 numbers of 2 bytes,
// through 4 layers, and 6 choices of 256 logits each. One dimension: both halves of a layer, and the embedding, are
// sums of whole rows. Two (Pope et al., 2022, section 3.2.2): these are of a part of the width; queries, keys, values
// and the feed-forward's rows, 7 widths a layer, of a part of the columns; and norms are told two numbers of each part
// of the width, in fp32. Logits are summed before they are brought together.
TEST(GenerationRanks, WhatCrossesInOneAndInTwoDimensions) {
  SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/16);
  constexpr std::int64_t kLayers = 4, kTexts = 3 * 2, kTokens = (7 + 5) * kTexts, kChoices = 6 * kTexts;
  constexpr std::int64_t kWidth = 64 * 2, kLogits = 256 * 2;
  const auto crossing = [](std::int64_t tensor, std::int64_t hidden) {
    Scenario s = divided("resident", 1, tensor, 2);
    s.workload.parallel["hidden"] = hidden;
    Simulation simulation(s);
    simulation.run();
    const Traffic first = traffic(simulation.graph(0), "");
    for (Rank rank = 1; rank < tensor; ++rank)
      EXPECT_EQ(traffic(simulation.graph(rank), "").bytes, first.bytes) << "rank " << rank;
    return first.bytes;
  };
  const auto one = [](std::int64_t columns) {
    return kTokens * (2 * kLayers + 1) * kWidth + kChoices * kLogits / columns;
  };
  const auto layers = [](std::int64_t hidden, std::int64_t columns) {
    return kTokens * kLayers * (2 * kWidth / hidden + 7 * kWidth / columns);
  };
  const auto two = [&](std::int64_t hidden, std::int64_t columns) {
    const std::int64_t told = 2 * hidden * 4;
    return layers(hidden, columns) + kTokens * (kWidth / hidden + 2 * kLayers * told) +
           kChoices * (told + 2 * kLogits / columns);
  };
  EXPECT_EQ(crossing(2, 1), one(2));
  EXPECT_EQ(crossing(4, 1), one(4));
  EXPECT_EQ(crossing(4, 2), two(2, 2));
  EXPECT_EQ(crossing(8, 2), two(2, 4));
  EXPECT_EQ(crossing(8, 4), two(4, 2));
  EXPECT_EQ(crossing(16, 4), two(4, 4));
  EXPECT_EQ(layers(4, 4) * 2, layers(2, 2)) << "with four times as many ranks, half";
}

// A rank has as much less of each weight that products read as there are ranks, and keys and values of its heads.
TEST(GenerationRanks, TwoDimensionsDivideWeightsAmongAllRanks) {
  const auto parameters = [](std::int64_t tensor, std::int64_t hidden) {
    Scenario s = divided("resident", 1, tensor, 1);
    s.workload.parallel["hidden"] = hidden;
    Simulation simulation(s);
    simulation.run();
    const Graph& graph = simulation.graph(0);
    std::int64_t bytes = 0;
    for (TensorId id = 0; id < graph.tensor_count(); ++id)
      if (graph.tensor(id).role == Role::Parameter) bytes += graph.tensor(id).bytes;
    return std::pair{bytes, largest_page(graph)};
  };
  const auto [one, one_page] = parameters(4, 1);
  const auto [two, two_pages] = parameters(4, 2);
  EXPECT_LE(two, one) << "norms' weights and half of the biases are divided as well";
  EXPECT_EQ(two_pages, 2 * one_page) << "who divide the width have the same heads";
}

// A token takes less time where reading the cache is most of it.
TEST(GenerationRanks, ALongSharedCacheIsReadFasterByTexts) {
  const auto token_s = [](const char* attention) {
    Scenario s = by_texts(attention);
    s.workload.keys["sequence"] = 8192;
    s.workload.keys["head_size"] = 16;
    s.workload.generate["prompt"] = 8000;
    Simulation simulation(s);
    simulation.run();
    return analyse(simulation.record()).generated->token_s;
  };
  EXPECT_LT(token_s("batch"), token_s("heads"));
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
