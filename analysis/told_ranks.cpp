#include "analysis/told_ranks.hpp"

#include <algorithm>

#include "core/scenario/ranks.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

// All ranks of a copy's pipeline are in one, each of another stage.
RankPlace copy_of(const Scenario& scenario, Rank rank) {
  RankPlace place = place_of(scenario, rank);
  place.stage = 0;
  return place;
}

}  // namespace

std::vector<bool> told_ranks(const Scenario& scenario, Rank most) {
  const Rank count = rank_count(scenario);
  std::vector<bool> told(static_cast<std::size_t>(count), true);
  const bool alike = scenario.policy.name == "resident" && server_count(scenario) == 0 && scenario.switches.empty() &&
                     !generates(scenario);
  if (count <= most || !alike) return told;
  std::vector<RankPlace> copies{RankPlace{}};
  for (const Straggler& slow : scenario.truth.stragglers) copies.push_back(copy_of(scenario, slow.rank));
  for (Rank rank = 0; rank < count; ++rank)
    told[static_cast<std::size_t>(rank)] =
        std::find(copies.begin(), copies.end(), copy_of(scenario, rank)) != copies.end();
  return told;
}

}  // namespace tandem
