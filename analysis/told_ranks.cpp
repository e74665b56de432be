#include "analysis/told_ranks.hpp"

#include "core/scenario/ranks.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

// So that stages of all copies are on hosts in the same way.
bool fills_hosts(const Scenario& scenario) {
  const std::int64_t on_host = scenario.machine.devices_per_host;
  const std::int64_t of_a_stage = rank_count(scenario) / scenario.parallel.pipeline;
  return on_host == 0 || scenario.parallel.pipeline == 1 || of_a_stage % on_host == 0;
}

// As those that are folded (parallel.fold).
bool are_alike(const Scenario& scenario) {
  return scenario.policy.name == "resident" && scenario.switches.empty() && server_count(scenario) == 0 &&
         !generates(scenario) && scenario.truth.noise == 0 && scenario.truth.stragglers.empty() &&
         !scenario.machine.topology && fills_hosts(scenario);
}

}  // namespace

std::vector<bool> told_ranks(const Scenario& scenario, Rank most) {
  const Rank count = rank_count(scenario);
  std::vector<bool> told(static_cast<std::size_t>(count), true);
  if (count <= most || !are_alike(scenario)) return told;
  for (Rank rank = 0; rank < count; ++rank) {
    RankPlace place = place_of(scenario, rank);
    place.stage = 0;
    told[static_cast<std::size_t>(rank)] = place == RankPlace{};
  }
  return told;
}

}  // namespace tandem
