#include "core/scenario/layer_ranks.hpp"

#include <utility>
#include <vector>

namespace tandem {
namespace {

// Of the ranks that divide the rank's layers, `count` of which each is `stride` after the one before. Groups have
// numbers after all transfers', so that others have those that they have without.
RankGroup some_of(const Scenario& scenario, Rank rank, std::int64_t stride, std::int64_t count, std::int32_t kind) {
  const RankGroup all = tensor_group(scenario, rank);
  const Rank ranks = rank_count(scenario);
  std::vector<Rank> members;
  if (static_cast<std::int64_t>(all.members.size()) < all.size) {  // folded: it stands for all
    members = all.members;
  } else {
    const std::int64_t own = rank - all.members.front(), first = own - own / stride % count * stride;
    for (std::int64_t i = 0; i < count; ++i)
      members.push_back(all.members[static_cast<std::size_t>(first + i * stride)]);
  }
  const std::int32_t behind = transfer_group(scenario, ranks - 1, ranks, {true, true}).number + 1;
  const std::int32_t number = behind + kind * ranks + members.front();
  return {number, std::move(members), count};
}

std::int64_t columns_of(const Scenario& scenario) { return scenario.workload.tensor / hidden_ranks(scenario); }

}  // namespace

std::int64_t hidden_ranks(const Scenario& scenario) {
  const std::int64_t hidden = scenario.workload.parallel.integer_or("hidden", 1);
  return scenario.workload.tensor % hidden == 0 ? hidden : 1;  // core/transforms/tensor/tensor.cpp refuses others
}

RankGroup columns_group(const Scenario& scenario, Rank rank) {
  if (hidden_ranks(scenario) == 1) return tensor_group(scenario, rank);
  return some_of(scenario, rank, 1, columns_of(scenario), 0);
}

RankGroup hidden_group(const Scenario& scenario, Rank rank) {
  if (hidden_ranks(scenario) == 1) return {kNone, {rank}, 1};
  return some_of(scenario, rank, columns_of(scenario), hidden_ranks(scenario), 1);
}

}  // namespace tandem
