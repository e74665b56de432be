#include "core/scenario/saving_group.hpp"

#include "core/scenario/ranks.hpp"

namespace tandem {
namespace {

// Those of a stage that save: experts are divided among copies, states as well, and among ranks with tokens of the same
// samples; layers within each of these.
struct Savers {
  explicit Savers(const Scenario& scenario)
      : share_states(state_parts(scenario) > 1),
        copies(share_states ? state_parts(scenario) / sequence_ranks(scenario) : expert_ranks(scenario)),
        sections(share_states ? sequence_ranks(scenario) : 1),
        tensor(scenario.workload.tensor) {}
  bool has(const RankPlace& place) const {
    return place.server == kNone && place.data < copies && place.sequence < sections;
  }
  bool share_states;
  std::int64_t copies, sections, tensor;
};

}  // namespace

bool saves_states(const Scenario& scenario, Rank rank) { return Savers(scenario).has(place_of(scenario, rank)); }

// Its number is the one that transfers from its first rank to itself would have.
RankGroup saving_group(const Scenario& scenario) {
  constexpr Rank kKindsOfTransfers = 4;
  const Savers savers(scenario);
  RankGroup group{kNone, {}, scenario.parallel.pipeline * savers.copies * savers.sections * savers.tensor};
  for (Rank rank = 0; rank < rank_count(scenario); ++rank)
    if (savers.has(place_of(scenario, rank))) group.members.push_back(rank);
  const Rank first = group.members.front(), last = group.members.back();
  if (first != last)
    group.number = transfer_group(scenario, first, last, {}).number - kKindsOfTransfers * (last - first);
  return group;
}

SavingPart saving_part(const Scenario& scenario, Rank rank) {
  const Savers savers(scenario);
  const RankPlace place = place_of(scenario, rank);
  return {savers.copies * savers.sections * savers.tensor,
          (place.data * savers.sections + place.sequence) * savers.tensor + place.tensor};
}

}  // namespace tandem
