#include "core/scenario/saving_group.hpp"

#include "core/scenario/ranks.hpp"

namespace tandem {

bool saves_states(const Scenario& scenario, Rank rank) {
  const RankPlace place = place_of(scenario, rank);
  return place.data == 0 && place.tensor == 0;
}

// Its number is the one that transfers from its first rank to itself would have.
RankGroup saving_group(const Scenario& scenario, Rank rank) {
  constexpr Rank kKindsOfTransfers = 4;
  RankGroup group = pipeline_group(scenario, rank);
  const Rank first = group.members.front(), last = group.members.back();
  if (first == last) return group;
  group.number = transfer_group(scenario, first, last, {}).number - kKindsOfTransfers * (last - first);
  return group;
}

}  // namespace tandem
