#include "core/scenario/saving_group.hpp"

#include "core/scenario/ranks.hpp"

namespace tandem {

bool saves_states(const Scenario& scenario, Rank rank) {
  const RankPlace place = place_of(scenario, rank);
  return place.data < state_parts(scenario) && place.tensor == 0;
}

// Its number is the one that transfers from its first rank to itself would have.
RankGroup saving_group(const Scenario& scenario, Rank rank) {
  constexpr Rank kKindsOfTransfers = 4;
  const std::int64_t parts = state_parts(scenario);
  RankGroup stages = pipeline_group(scenario, rank), group = stages;
  if (parts > 1) {
    group.members.clear();
    for (const Rank stage : stages.members) {
      const RankGroup sharing = shard_group(scenario, stage);
      group.members.insert(group.members.end(), sharing.members.begin(), sharing.members.end());
    }
    group.size *= parts;
  }
  const Rank first = group.members.front(), last = group.members.back();
  if (first == last) return group;
  group.number = transfer_group(scenario, first, last, {}).number - kKindsOfTransfers * (last - first);
  return group;
}

}  // namespace tandem
