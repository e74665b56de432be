// The ranks of a run: copies of a pipeline of stages, each with samples of its own, whose layers several ranks may
// divide, and whose samples. Ranks that divide a layer stand in a row, then those that divide samples, then copies of a
// stage. Must not know what ranks compute or say to each other.
#pragma once

#include "core/base/rank_group.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Where a rank stands: its part of each layer and of each sample, the part of each batch that it trains on, its stage
// of the pipeline.
struct RankPlace {
  Rank data = 0, stage = 0, tensor = 0, sequence = 0;
  std::int32_t server = kNone;  // of a parameter server, its number: it trains on nothing
  bool operator==(const RankPlace&) const = default;
};

// parallel.servers: ranks after all others, which have parameters and states of those that train.
std::int64_t server_count(const Scenario& scenario);
Rank server_rank(const Scenario& scenario, std::int32_t server);

// One a device, of which a folded run has one for all that are alike: the first of each stage.
Rank rank_count(const Scenario& scenario);
std::int64_t device_count(const Scenario& scenario);
RankPlace place_of(const Scenario& scenario, Rank rank);
Rank rank_at(const Scenario& scenario, RankPlace place);
// The one whose losses are reported: the first of the last stage.
Rank leading_rank(const Scenario& scenario);

// Ranks that each sample's tokens are divided among; ranks that each mixture's experts are, of those with samples of
// their own.
std::int64_t sequence_ranks(const Scenario& scenario);
std::int64_t expert_ranks(const Scenario& scenario);

// The same, of which no rank has a part of a layer, of a sample or of a mixture: whose names and shapes of weights are
// the network's own.
Scenario undivided(Scenario scenario);

// All ranks that have the same weights as the rank has, which add up their gradients.
RankGroup data_group(const Scenario& scenario, Rank rank);
// Of those, the ones that divide states among them, neighbours: all, unless parallel.shard says how many.
RankGroup shard_group(const Scenario& scenario, Rank rank);
// And those that have the same part of the states as the rank has, one of each such group.
RankGroup across_group(const Scenario& scenario, Rank rank);
// Into how many parts ranks divide states; 1: they do not.
std::int64_t state_parts(const Scenario& scenario);
// All that divide layers with it.
RankGroup tensor_group(const Scenario& scenario, Rank rank);
// All that divide samples with it.
RankGroup sequence_group(const Scenario& scenario, Rank rank);
// All that divide experts with it; and those that have the same ones.
RankGroup expert_group(const Scenario& scenario, Rank rank);
RankGroup same_experts_group(const Scenario& scenario, Rank rank);
// All ranks of the rank's copy of the pipeline, by stage.
RankGroup pipeline_group(const Scenario& scenario, Rank rank);
// From the first member to the second: a group for each kind of transfer, none of which waits for another.
struct TransferKind {
  bool backward = false, of_bucket = false;
};
RankGroup transfer_group(const Scenario& scenario, Rank from, Rank to, TransferKind kind);

// All that the rank does something in: with others at once, or as one of a pair, of which the first sends.
std::vector<RankGroup> collective_groups(const Scenario& scenario, Rank rank);
std::vector<RankGroup> transfer_groups(const Scenario& scenario, Rank rank);

// Of `count` ranks, each `stride` after the one before, those that are on the first one's host; 0: all.
std::int64_t members_on_a_host(const Scenario& scenario, std::int64_t stride, std::int64_t count);
// The same of data_group(), shard_group(), across_group() and same_experts_group().
std::int64_t data_members_on_a_host(const Scenario& scenario);
std::int64_t shard_members_on_a_host(const Scenario& scenario);
std::int64_t across_members_on_a_host(const Scenario& scenario);
std::int64_t same_experts_on_a_host(const Scenario& scenario);
// Whether two stages' ranks of one copy are on hosts of their own.
bool is_other_host(const Scenario& scenario, Rank from, Rank to);

}  // namespace tandem
