// Where ranks stand that divide layers, samples and experts, which groups they are in, and what all-to-alls between
// hosts take.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/machine/cost_model.hpp"
#include "core/model/module.hpp"
#include "core/scenario/alike_groups.hpp"
#include "core/scenario/layer_ranks.hpp"
#include "core/scenario/ranks.hpp"
#include "core/scenario/saving_group.hpp"
#include "core/step/exchange_ranks.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// 2 stages of 4 copies, each of 3 ranks that divide samples, 2 of the copies divide experts.
Scenario divided() {
  Scenario s = gpt_scenario("resident", kGiB);
  s.parallel.pipeline = 2;
  s.workload.devices = 4;
  s.workload.parallel["sequence"] = 3;
  s.workload.parallel["expert"] = 2;
  return s;
}

TEST(DividedRanks, StandNextToEachOther) {
  Scenario s = divided();
  EXPECT_EQ(rank_count(s), 24);
  EXPECT_EQ(device_count(s), 24);
  for (Rank rank = 0; rank < 24; ++rank) EXPECT_EQ(rank_at(s, place_of(s, rank)), rank);
  EXPECT_EQ(place_of(s, 1), (RankPlace{.data = 0, .stage = 0, .tensor = 0, .sequence = 1}));
  EXPECT_EQ(place_of(s, 3), (RankPlace{.data = 1, .stage = 0, .tensor = 0, .sequence = 0}));
  EXPECT_EQ(place_of(s, 12), (RankPlace{.data = 0, .stage = 1, .tensor = 0, .sequence = 0}));
  s.workload.tensor = 2;
  EXPECT_EQ(device_count(s), 48);
  EXPECT_EQ(place_of(s, 1), (RankPlace{.data = 0, .stage = 0, .tensor = 1, .sequence = 0}));
  EXPECT_EQ(place_of(s, 2), (RankPlace{.data = 0, .stage = 0, .tensor = 0, .sequence = 1}));
}

TEST(DividedRanks, AreInGroups) {
  const Scenario s = divided();
  using Ranks = std::vector<Rank>;
  EXPECT_EQ(sequence_group(s, 4).members, (Ranks{3, 4, 5}));
  EXPECT_EQ(data_group(s, 4).members, (Ranks{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(expert_group(s, 4).members, (Ranks{1, 4}));
  EXPECT_EQ(expert_group(s, 7).members, (Ranks{7, 10}));
  EXPECT_EQ(same_experts_group(s, 4).members, (Ranks{3, 4, 5, 9, 10, 11}));
  EXPECT_EQ(exchange_group(s, ExchangeAmong::Expert, 4).number, expert_group(s, 1).number);
}

// Two ranks divide the hidden width, and three the columns, of each of two stages.
TEST(DividedRanks, DivideLayersTwoWays) {
  Scenario s = gpt_scenario("resident", kGiB);
  s.parallel.pipeline = 2;
  s.workload.tensor = 6;
  using Ranks = std::vector<Rank>;
  EXPECT_EQ(columns_group(s, 8).members, tensor_group(s, 8).members) << "one way alone";
  EXPECT_EQ(columns_group(s, 8).number, tensor_group(s, 8).number);
  EXPECT_EQ(hidden_group(s, 8).size, 1);
  const std::size_t one_way = collective_groups(s, 8).size();
  s.workload.parallel["hidden"] = 2;
  EXPECT_EQ(tensor_group(s, 8).members, (Ranks{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(columns_group(s, 8).members, (Ranks{6, 7, 8}));
  EXPECT_EQ(columns_group(s, 9).members, (Ranks{9, 10, 11}));
  EXPECT_EQ(hidden_group(s, 8).members, (Ranks{8, 11}));
  EXPECT_EQ(hidden_group(s, 11).number, hidden_group(s, 8).number);
  EXPECT_EQ(exchange_group(s, ExchangeAmong::Tensor, 8).number, columns_group(s, 7).number);
  EXPECT_EQ(exchange_group(s, ExchangeAmong::Hidden, 8).number, hidden_group(s, 8).number);
  EXPECT_EQ(collective_groups(s, 8).size(), one_way + 2);
  std::map<std::int32_t, Ranks> known;  // no two groups have one number
  for (Rank rank = 0; rank < 12; ++rank) {
    for (const auto& groups : {collective_groups(s, rank), transfer_groups(s, rank)})
      for (const RankGroup& group : groups)
        EXPECT_EQ(known.try_emplace(group.number, group.members).first->second, group.members);
  }
  s.parallel.fold = true;
  EXPECT_EQ(columns_group(s, 1).members, (Ranks{1}));
  EXPECT_EQ(columns_group(s, 1).size, 3);
  EXPECT_EQ(hidden_group(s, 1).size, 2);
  const AlikeGroups alike(s);
  EXPECT_EQ(alike.devices(columns_group(s, 1).number),
            (std::vector<std::vector<std::int64_t>>{{6, 7, 8}, {9, 10, 11}}));
  EXPECT_EQ(alike.devices(hidden_group(s, 1).number),
            (std::vector<std::vector<std::int64_t>>{{6, 9}, {7, 10}, {8, 11}}));
}

// Who divide samples divide states as well, those of neighbouring copies together.
TEST(DividedRanks, DivideStatesAmongAllThatHaveThem) {
  Scenario s = divided();
  s.workload.partition = "states";
  using Ranks = std::vector<Rank>;
  EXPECT_EQ(state_parts(s), 12);
  EXPECT_EQ(shard_group(s, 4).members, data_group(s, 4).members);
  s.workload.parallel.set("shard", std::int64_t{2});
  EXPECT_EQ(state_parts(s), 6);
  EXPECT_EQ(shard_group(s, 4).members, (Ranks{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(shard_group(s, 4).size, 6);
  EXPECT_EQ(across_group(s, 4).members, (Ranks{4, 10}));
  EXPECT_EQ(across_group(s, 4).size, 2);
}

// Those of each stage that have together all that there is, each of them something of its own.
TEST(DividedRanks, SaveTogether) {
  Scenario s = divided();
  using Ranks = std::vector<Rank>;
  EXPECT_EQ(saving_group(s).members, (Ranks{0, 3, 12, 15})) << "two have all experts";
  EXPECT_EQ(saving_part(s, 15).own, 1);
  s.workload.parallel["expert"] = 1;
  EXPECT_EQ(saving_group(s).members, (Ranks{0, 12})) << "a stage's samples are divided, not its weights";
  s.workload.partition = "states";
  s.workload.parallel.set("shard", std::int64_t{1});
  EXPECT_EQ(saving_group(s).members, (Ranks{0, 1, 2, 12, 13, 14}));
  EXPECT_EQ(saving_part(s, 13).own, 1);
  s.workload.partition = "none";
  s.workload.tensor = 2;
  EXPECT_EQ(saving_group(s).members, (Ranks{0, 1, 24, 25}));
  EXPECT_TRUE(saves_states(s, 25));
  EXPECT_FALSE(saves_states(s, 2)) << "it has the weights of the first one's samples";
  s.parallel.fold = true;
  EXPECT_EQ(saving_group(s).members, (Ranks{0, 1}));
  EXPECT_EQ(saving_group(s).size, 4);
}

// One number, one list of members; those that transfers have are others.
TEST(DividedRanks, GroupsHaveNumbersOfTheirOwn) {
  const Scenario s = divided();
  std::map<std::int32_t, std::vector<Rank>> groups;
  const auto add = [&](const RankGroup& group) {
    const auto [found, fresh] = groups.emplace(group.number, group.members);
    EXPECT_EQ(found->second, group.members) << group.number;
  };
  for (Rank rank = 0; rank < 24; ++rank) {
    for (const auto group :
         {data_group, tensor_group, pipeline_group, sequence_group, expert_group, same_experts_group})
      add(group(s, rank));
    for (Rank to = 0; to < 24; ++to)
      if (to != rank) add(transfer_group(s, rank, to, {}));
  }
  // By stage; each rank's own; by place in a stage; by copy and stage; by two of them; by half of them.
  EXPECT_EQ(groups.size(), 2U + 24 + 12 + 8 + 12 + 4 + 24 * 23);
}

// One rank of each stage for all: groups keep their sizes, by which costs go.
TEST(DividedRanks, FoldKeepsSizes) {
  Scenario s = divided();
  s.parallel.fold = true;
  EXPECT_EQ(rank_count(s), 2);
  EXPECT_EQ(device_count(s), 24);
  EXPECT_EQ(data_group(s, 0).size, 12);
  EXPECT_EQ(sequence_group(s, 0).size, 3);
  EXPECT_EQ(expert_group(s, 0).size, 2);
  EXPECT_EQ(same_experts_group(s, 0).size, 6);
  EXPECT_EQ(sequence_group(s, 1).members, std::vector<Rank>{1});
}

// Of 6 devices a host: two copies, whose experts are on one host, and others with the same ones on the next.
TEST(DividedRanks, OnTheirHosts) {
  Scenario s = divided();
  s.machine.devices_per_host = 6;
  EXPECT_EQ(exchange_members_on_a_host(s, ExchangeAmong::Sequence), 0);
  EXPECT_EQ(exchange_members_on_a_host(s, ExchangeAmong::Expert), 0);
  EXPECT_EQ(same_experts_on_a_host(s), 3);
  EXPECT_EQ(data_members_on_a_host(s), 6);
  s.machine.devices_per_host = 3;
  EXPECT_EQ(exchange_members_on_a_host(s, ExchangeAmong::Expert), 1);
}

// Of an all-to-all of 8 ranks on two hosts, half of what a rank has leaves by its own card: 1 GB at 10 GB/s. Within one
// host 7/8 of it go at 100 GB/s. A ring of the same bytes leaves by the cards of all four.
TEST(DividedRanks, AllToAllsLeaveByTheirOwnCards) {
  HardwareProfile machine = round_machine(kGiB);
  machine.collective_bytes_per_s = 100e9;
  machine.network_bytes_per_s = 10e9;
  machine.network_latency_ns = 1000;
  const CostModel cost(machine);
  constexpr std::int64_t kBytes = 2'000'000'000;
  Graph graph;
  const auto ns = [&](const char* body, std::vector<std::int64_t> sizes) {
    Kernel kernel;
    kernel.bytes = kBytes;
    return cost.run_ns(graph, graph.add_work({body, DType::BF16, std::move(sizes), {kernel}}), Engine::Collective);
  };
  EXPECT_EQ(ns("all_to_all", {kBytes / 2, 8}), 17'500'000);
  EXPECT_EQ(ns("all_to_all", {kBytes / 2, 8, 4}), 100'001'000);
  EXPECT_EQ(ns("all_gather", {kBytes / 2, 8, 4}), 43'751'000);
}

}  // namespace
}  // namespace tandem::testing
