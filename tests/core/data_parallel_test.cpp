// What ranks that train on samples of their own have and say to each other: graphs, without running them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/common/entry.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

Scenario copies(std::int64_t count, const std::string& partition = "none") {
  Scenario s = small_scenario("gpt");
  s.workload.precision = DType::BF16;
  s.workload.devices = count;
  s.workload.partition = partition;
  s.workload.micro_batches = 2;
  s.steps = 1;
  return s;
}

Graph graph_of(const Scenario& scenario, Rank rank = 0) { return whole_graph(scenario, {}, 0, rank); }

std::vector<const Op*> collectives(const Graph& graph, const std::string& body) {
  std::vector<const Op*> ops;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.engine == Engine::Collective && graph.work_of(op).body == body)
      ops.push_back(&op);
  return ops;
}

// Bytes that a rank sends in a step: of what goes around a ring of n, all but an n-th; an all-reduce goes around twice.
std::int64_t sent(const Graph& graph, bool between_hosts = false) {
  std::int64_t bytes = 0;
  for (const char* body : {"all_reduce", "all_gather", "reduce_scatter"})
    for (const Op* op : collectives(graph, body)) {
      const Work& work = graph.work_of(*op);
      if (between_hosts && work.sizes.size() < 3) continue;
      bytes += CostModel::memory_bytes(work) / work.sizes[1] * (work.sizes[1] - 1);
    }
  return bytes;
}

std::int64_t bytes_of(const Graph& graph, Role role) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).reported_role() == role) bytes += graph.tensor(id).bytes;
  return bytes;
}

// In the order in which the backward finishes them, each gradient once.
TEST(GradientBuckets, GatherAllGradients) {
  Scenario s = copies(4);
  const Graph each = graph_of(s);
  s.workload.parallel["bucket"] = std::int64_t{100'000};
  const Graph graph = graph_of(s);
  std::vector<std::string> gathered, by_themselves;
  std::int64_t largest = 0;
  for (const Op* op : collectives(each, "all_reduce")) {
    by_themselves.push_back(each.tensor_of(op->reads.front()).name);
    largest = std::max(largest, each.tensor_of(op->reads.front()).bytes);
  }
  const std::vector<const Op*> buckets = collectives(graph, "all_reduce");
  EXPECT_LT(buckets.size(), by_themselves.size());
  for (const Op* op : buckets) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < op->reads.size(); ++i) {
      gathered.push_back(graph.tensor_of(op->reads[i]).name);
      bytes += graph.value(op->reads[i]).bytes;
      EXPECT_EQ(op->writes[i].reuses, op->reads[i]);
    }
    EXPECT_TRUE(bytes >= 100'000 || op == buckets.back()) << bytes;
    EXPECT_LT(bytes, 100'000 + largest);
  }
  EXPECT_EQ(gathered, by_themselves);
  EXPECT_EQ(sent(graph), sent(each));
}

// ZeRO (Rajbhandari et al., SC 2020), section 5.1: of 2 bytes of parameters, 2 of gradients and 12 of states, ranks
// divide the last. A rank's part of a gradient comes as the whole one goes. Parameters in bf16 are the upper halves of
// their masters, so that a rank that divides nothing has 14.
TEST(StateDivision, TakesTheBytesOfZeroStageOne) {
  const Graph whole = graph_of(copies(1));
  const std::int64_t parameters = bytes_of(whole, Role::Parameter) / 2;
  EXPECT_EQ(bytes_of(whole, Role::Gradient) + bytes_of(whole, Role::OptimizerState), 12 * parameters);
  for (const std::int64_t ranks : {2, 4, 8}) {
    const Graph graph = graph_of(copies(ranks, "optimizer"), static_cast<Rank>(ranks - 1));
    std::int64_t padded = 0, wholes = 0;
    for (TensorId id = 0; id < graph.tensor_count(); ++id) {
      if (graph.tensor(id).name.ends_with(".whole_parameter")) padded += graph.tensor(id).bytes / 2;
      if (graph.tensor(id).name.ends_with(".whole_gradient")) wholes += graph.tensor(id).bytes;
    }
    EXPECT_GE(padded, parameters);
    EXPECT_LE(padded, parameters + 512 * graph.tensor_count());
    const std::int64_t held = bytes_of(graph, Role::Parameter) + bytes_of(graph, Role::OptimizerState) + wholes;
    EXPECT_EQ(held * ranks, (2 + 2) * ranks * padded + 12 * padded) << ranks;
    EXPECT_EQ((bytes_of(graph, Role::Gradient) - wholes) * ranks, 2 * padded);
  }
}

// The same as an all-reduce, whatever the micro-batches are; with gradients divided each micro-batch reduces.
TEST(StateDivision, SendsWhatAnAllReduceSends) {
  const std::int64_t plain = sent(graph_of(copies(4)));
  const std::int64_t optimizer = sent(graph_of(copies(4, "optimizer"))), states = sent(graph_of(copies(4, "states")));
  EXPECT_NEAR(static_cast<double>(optimizer), static_cast<double>(plain),
              0.05 * static_cast<double>(plain));  // padding
  EXPECT_EQ(2 * states, 3 * optimizer);
}

// Eight copies on two hosts of four. Whole rings of parameters and gradients leave a host; of groups within the hosts
// only a fourth of the gradients does, to one other rank, twice.
TEST(HybridSharding, LeavesTheHostWithAPart) {
  Scenario s = copies(8, "states");
  s.workload.micro_batches = 1;
  s.machine.devices_per_host = 4;
  const Graph all = graph_of(s);
  EXPECT_EQ(sent(all, true), sent(all));
  s.workload.parallel["shard"] = std::int64_t{4};
  const Graph graph = graph_of(s, 5);
  std::int64_t elements = 0;
  for (const Op* op : collectives(graph, "reduce_scatter")) {
    EXPECT_EQ(graph.group(op->match_group), (std::vector<Rank>{4, 5, 6, 7}));
    elements += graph.work_of(*op).sizes[0];
  }
  for (const Op* op : collectives(graph, "all_gather"))
    EXPECT_EQ(graph.group(op->match_group), (std::vector<Rank>{4, 5, 6, 7}));
  for (const Op* op : collectives(graph, "all_reduce"))
    EXPECT_EQ(graph.group(op->match_group), (std::vector<Rank>{1, 5}));
  EXPECT_EQ(sent(graph, true), 2 * elements / 4 * 2 / 2);
  EXPECT_EQ(sent(graph) - sent(graph, true), 2 * (2 * elements / 4 * 3));
  // Each rank has a fourth of the states, and not an eighth.
  const std::int64_t states = bytes_of(graph, Role::OptimizerState);
  EXPECT_EQ(states * 4, elements * 10);
}

TEST(HybridSharding, GroupsHaveNumbersOfTheirOwn) {
  Scenario s = copies(4, "states");
  s.workload.tensor = 2;
  s.parallel.pipeline = 3;
  s.workload.parallel["shard"] = std::int64_t{2};
  std::map<std::int32_t, std::vector<Rank>> groups;
  const auto add = [&](const RankGroup& group, std::size_t size) {
    EXPECT_EQ(group.members.size(), size);
    EXPECT_EQ(group.size, static_cast<std::int64_t>(size));
    const auto [found, fresh] = groups.emplace(group.number, group.members);
    EXPECT_EQ(found->second, group.members) << group.number;
  };
  for (Rank rank = 0; rank < rank_count(s); ++rank) {
    add(data_group(s, rank), 4);
    add(shard_group(s, rank), 2);
    add(across_group(s, rank), 2);
    add(tensor_group(s, rank), 2);
    add(pipeline_group(s, rank), 3);
    if (rank > 0) add(transfer_group(s, 0, rank, {}), 2);
  }
  EXPECT_EQ(groups.size(), 6U + 12 + 12 + 12 + 8 + 23);
  EXPECT_EQ(shard_group(s, 5).members, (std::vector<Rank>{5, 7}));
  EXPECT_EQ(across_group(s, 5).members, (std::vector<Rank>{1, 5}));
  s.parallel.fold = true;
  EXPECT_EQ(shard_group(s, 1).members, (std::vector<Rank>{1}));
  EXPECT_EQ(shard_group(s, 1).size, 2);
  s.workload.parallel["shard"] = std::int64_t{4};
  EXPECT_EQ(shard_group(s, 1).number, data_group(s, 1).number);
  EXPECT_EQ(across_group(s, 1).size, 1);
}

TEST(HybridSharding, DividesCopiesAndStates) {
  const auto refusal = [](std::int64_t shard, const char* partition) -> std::string {
    Scenario s = copies(4, partition);
    s.workload.parallel["shard"] = shard;
    try {
      all_rewrites(s, {});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(2, "states"), "");
  EXPECT_EQ(refusal(4, "none"), "");
  EXPECT_EQ(refusal(3, "states").find("parallel.shard: 3 ranks at a time do not divide 4 copies"), 0U);
  EXPECT_EQ(refusal(2, "none").find("parallel.shard"), 0U);
}

}  // namespace
}  // namespace tandem
