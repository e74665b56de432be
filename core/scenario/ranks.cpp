#include "core/scenario/ranks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/scenario/layer_ranks.hpp"

namespace tandem {
namespace {

Rank at_least_one(std::int64_t count) { return static_cast<Rank>(std::max<std::int64_t>(count, 1)); }

// How many there are of each kind.
struct Counts {
  explicit Counts(const Scenario& scenario)
      : tensor(at_least_one(scenario.workload.tensor)),
        sequence(at_least_one(sequence_ranks(scenario))),
        data(at_least_one(scenario.workload.devices)),
        stages(at_least_one(scenario.parallel.pipeline)),
        servers(static_cast<Rank>(server_count(scenario))),
        experts(at_least_one(expert_ranks(scenario))),
        shard(at_least_one(scenario.workload.parallel.integer_or("shard", data))),
        folded(scenario.parallel.fold) {
    if (data % shard != 0) shard = data;  // core/transforms/partition.cpp refuses it
  }
  Rank tensor, sequence, data, stages, servers;
  Rank experts;  // of data: who divide them stand in a row
  Rank shard;    // copies that divide states
  bool folded;
  // Whose ranks are there, of one that folds none.
  Rank copies() const { return folded ? 1 : data; }
  Rank sections() const { return folded ? 1 : sequence; }
  Rank parts() const { return folded ? 1 : tensor; }
  bool divides_copies() const { return shard < data; }
  Rank trainers() const { return stages * copies() * sections() * parts(); }
  Rank count() const { return trainers() + servers; }
  Rank at(RankPlace p) const {
    if (p.server != kNone) return trainers() + p.server;
    return ((p.stage * copies() + p.data) * sections() + p.sequence) * parts() + p.tensor;
  }
  RankPlace place(Rank rank) const {
    if (rank >= trainers()) return {.server = rank - trainers()};
    const Rank section = rank / parts(), copy = section / sections();
    return {copy % copies(), copy / copies(), rank % parts(), section % sections()};
  }
};

// Kinds of groups, in the order in which they are numbered; then come transfers.
enum class Kind : std::uint8_t { Data, Shard, Across, Pipeline, Tensor, Sequence, Expert, SameExperts, Transfer };

// The number of the first group of a kind. Each kind has at most as many groups as there are ranks.
std::int32_t first_number(const Counts& shape, Kind kind) { return static_cast<std::int32_t>(kind) * shape.count(); }

// Known by its first member's rank.
RankGroup group_of(const Counts& shape, Kind kind, std::vector<Rank> members, std::int64_t size) {
  const std::int32_t number = first_number(shape, kind) + members.front();
  return {number, std::move(members), size};
}

}  // namespace

std::int64_t server_count(const Scenario& scenario) { return scenario.workload.parallel.integer_or("servers", 0); }
std::int64_t sequence_ranks(const Scenario& scenario) { return scenario.workload.parallel.integer_or("sequence", 1); }
std::int64_t expert_ranks(const Scenario& scenario) { return scenario.workload.parallel.integer_or("expert", 1); }

Rank server_rank(const Scenario& scenario, std::int32_t server) { return rank_at(scenario, {.server = server}); }

Rank rank_count(const Scenario& scenario) { return Counts(scenario).count(); }

std::int64_t device_count(const Scenario& scenario) {
  const Counts shape(scenario);
  return std::int64_t{shape.tensor} * shape.sequence * shape.data * shape.stages + shape.servers;
}

RankPlace place_of(const Scenario& scenario, Rank rank) {
  const Counts shape(scenario);
  CHECK(rank >= 0 && rank < shape.count(), rank, shape.count());
  return shape.place(rank);
}

Rank rank_at(const Scenario& scenario, RankPlace place) {
  const Counts shape(scenario);
  const Rank rank = shape.at(place);
  CHECK(rank >= 0 && shape.place(rank) == place, place.data, place.stage, place.tensor);
  return rank;
}

Rank leading_rank(const Scenario& scenario) {
  return rank_at(scenario, {.data = 0, .stage = Counts(scenario).stages - 1});
}

namespace {

// It does nothing together with all that are like it.
RankGroup alone(Rank rank) { return {kNone, {rank}, 1}; }

// Of ranks that differ in one part of their place alone, those that are there.
RankGroup along(const Counts& counts, Rank rank, Kind kind, Rank RankPlace::*part, Rank there, std::int64_t size) {
  RankPlace place = counts.place(rank);
  if (place.server != kNone) return alone(rank);
  std::vector<Rank> members;
  for (place.*part = 0; place.*part < there; ++(place.*part)) members.push_back(counts.at(place));
  return group_of(counts, kind, std::move(members), size);
}

}  // namespace

Scenario undivided(Scenario scenario) {
  WorkloadOptions& w = scenario.workload;
  w.tensor = 1;
  for (const char* key : {"sequence", "expert", "expert_imbalance", "hidden"}) w.parallel[key] = 1;
  w.parallel["sequence_kind"] = "ulysses", w.parallel["ring_layout"] = "striped", w.parallel["attention"] = "heads";
  return scenario;
}

RankGroup data_group(const Scenario& scenario, Rank rank) {
  const Counts shape(scenario);
  RankPlace place = place_of(scenario, rank);
  if (place.server != kNone) return alone(rank);
  std::vector<Rank> members;
  for (place.data = 0; place.data < shape.copies(); ++place.data)
    for (place.sequence = 0; place.sequence < shape.sections(); ++place.sequence) members.push_back(shape.at(place));
  return group_of(shape, Kind::Data, std::move(members), std::int64_t{shape.data} * shape.sequence);
}

RankGroup shard_group(const Scenario& scenario, Rank rank) {
  const Counts shape(scenario);
  RankGroup all = data_group(scenario, rank);
  if (!shape.divides_copies()) return all;
  const Rank number = place_of(scenario, rank).data / shape.shard;
  std::erase_if(all.members, [&](Rank member) { return place_of(scenario, member).data / shape.shard != number; });
  return group_of(shape, Kind::Shard, std::move(all.members), std::int64_t{shape.shard} * shape.sequence);
}

RankGroup across_group(const Scenario& scenario, Rank rank) {
  const Counts shape(scenario);
  if (!shape.divides_copies()) return alone(rank);
  RankGroup all = data_group(scenario, rank);
  const RankPlace own = place_of(scenario, rank);
  std::erase_if(all.members, [&](Rank member) {
    const RankPlace place = place_of(scenario, member);
    return place.data % shape.shard != own.data % shape.shard || place.sequence != own.sequence;
  });
  return group_of(shape, Kind::Across, std::move(all.members), shape.data / shape.shard);
}

std::int64_t state_parts(const Scenario& scenario) {
  const Counts shape(scenario);
  return scenario.workload.partition == "none" ? 1 : std::int64_t{shape.shard} * shape.sequence;
}

RankGroup pipeline_group(const Scenario& scenario, Rank rank) {
  const Counts counts(scenario);
  return along(counts, rank, Kind::Pipeline, &RankPlace::stage, counts.stages, counts.stages);
}

RankGroup tensor_group(const Scenario& scenario, Rank rank) {
  const Counts counts(scenario);
  return along(counts, rank, Kind::Tensor, &RankPlace::tensor, counts.parts(), counts.tensor);
}

RankGroup sequence_group(const Scenario& scenario, Rank rank) {
  const Counts counts(scenario);
  return along(counts, rank, Kind::Sequence, &RankPlace::sequence, counts.sections(), counts.sequence);
}

RankGroup expert_group(const Scenario& scenario, Rank rank) {
  const Counts shape(scenario);
  RankPlace place = place_of(scenario, rank);
  if (place.server != kNone) return alone(rank);
  const Rank first = place.data / shape.experts * shape.experts;
  std::vector<Rank> members;
  for (place.data = first; place.data < std::min(first + shape.experts, shape.copies()); ++place.data)
    members.push_back(shape.at(place));
  return group_of(shape, Kind::Expert, std::move(members), shape.experts);
}

RankGroup same_experts_group(const Scenario& scenario, Rank rank) {
  const Counts shape(scenario);
  RankPlace place = place_of(scenario, rank);
  if (place.server != kNone) return alone(rank);
  std::vector<Rank> members;
  for (place.data %= shape.experts; place.data < shape.copies(); place.data += shape.experts)
    for (place.sequence = 0; place.sequence < shape.sections(); ++place.sequence) members.push_back(shape.at(place));
  return group_of(shape, Kind::SameExperts, std::move(members),
                  std::int64_t{shape.data / shape.experts} * shape.sequence);
}

RankGroup transfer_group(const Scenario& scenario, Rank from, Rank to, TransferKind kind) {
  CHECK(from != to, from);
  const Counts shape(scenario);
  const Rank pair = from * shape.count() + to;
  const std::int32_t first = first_number(shape, Kind::Transfer);
  return {first + 4 * pair + (kind.of_bucket ? 2 : 0) + (kind.backward ? 1 : 0), {from, to}, 2};
}

std::vector<RankGroup> collective_groups(const Scenario& scenario, Rank rank) {
  std::vector<RankGroup> groups;
  for (RankGroup& group :
       std::vector{data_group(scenario, rank), pipeline_group(scenario, rank), tensor_group(scenario, rank),
                   sequence_group(scenario, rank), expert_group(scenario, rank)})
    if (group.members.size() > 1) groups.push_back(std::move(group));
  if (hidden_ranks(scenario) > 1)
    for (RankGroup& group : std::vector{columns_group(scenario, rank), hidden_group(scenario, rank)})
      if (group.members.size() > 1) groups.push_back(std::move(group));
  if (Counts(scenario).divides_copies())
    for (RankGroup& group : std::vector{shard_group(scenario, rank), across_group(scenario, rank)})
      if (group.members.size() > 1) groups.push_back(std::move(group));
  if (RankGroup same = same_experts_group(scenario, rank); expert_ranks(scenario) > 1 && same.members.size() > 1)
    groups.push_back(std::move(same));
  return groups;
}

std::vector<RankGroup> transfer_groups(const Scenario& scenario, Rank rank) {
  std::vector<RankGroup> groups;
  const bool serves = place_of(scenario, rank).server != kNone;
  for (Rank other = 0; server_count(scenario) > 0 && other < rank_count(scenario); ++other) {
    if ((place_of(scenario, other).server != kNone) == serves) continue;             // workers and servers
    groups.push_back(transfer_group(scenario, rank, other, {.backward = !serves}));  // gradients, to a server
    groups.push_back(transfer_group(scenario, other, rank, {.backward = serves}));
  }
  for (const Rank other : pipeline_group(scenario, rank).members)
    for (const bool backward : {false, true})
      for (const bool of_bucket : {false, true}) {
        if (other == rank) continue;
        groups.push_back(transfer_group(scenario, rank, other, {.backward = backward, .of_bucket = of_bucket}));
        groups.push_back(transfer_group(scenario, other, rank, {.backward = backward, .of_bucket = of_bucket}));
      }
  return groups;
}

std::int64_t members_on_a_host(const Scenario& scenario, std::int64_t stride, std::int64_t count) {
  const std::int64_t most = scenario.machine.devices_per_host;
  if (most == 0 || stride * (count - 1) < most) return 0;
  return std::max<std::int64_t>(1, (most + stride - 1) / stride);
}

std::int64_t data_members_on_a_host(const Scenario& scenario) {
  const Counts shape(scenario);
  return members_on_a_host(scenario, shape.tensor, std::int64_t{shape.sequence} * shape.data);
}

// Of samples that ranks divide, those of one copy stand in a row: what there is of them on a host comes first.
std::int64_t same_experts_on_a_host(const Scenario& scenario) {
  const Counts shape(scenario);
  const std::int64_t copy = std::int64_t{shape.tensor} * shape.sequence;
  const std::int64_t copies = members_on_a_host(scenario, copy * shape.experts, shape.data / shape.experts);
  return copies == 0 ? 0 : copies * shape.sequence;
}

std::int64_t shard_members_on_a_host(const Scenario& scenario) {
  const Counts shape(scenario);
  return members_on_a_host(scenario, shape.tensor, std::int64_t{shape.shard} * shape.sequence);
}

std::int64_t across_members_on_a_host(const Scenario& scenario) {
  const Counts shape(scenario);
  const std::int64_t stride = std::int64_t{shape.tensor} * shape.sequence * shape.shard;
  return members_on_a_host(scenario, stride, shape.data / shape.shard);
}

bool is_other_host(const Scenario& scenario, Rank from, Rank to) {
  const std::int64_t most = scenario.machine.devices_per_host;
  const auto host = [&](Rank rank) {
    Counts all(scenario);
    const RankPlace place = all.place(rank);
    all.folded = false;
    return all.at(place) / most;
  };
  return most > 0 && host(from) != host(to);
}

}  // namespace tandem
