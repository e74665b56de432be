#include "core/step/exchange_ranks.hpp"

namespace tandem {

RankGroup exchange_group(const Scenario& scenario, ExchangeAmong among, Rank rank) {
  if (among == ExchangeAmong::Sequence) return sequence_group(scenario, rank);
  return among == ExchangeAmong::Expert ? expert_group(scenario, rank) : tensor_group(scenario, rank);
}

// Ranks that divide a layer stand next to each other, then those that divide a sample, then those with samples of their
// own.
std::int64_t exchange_members_on_a_host(const Scenario& scenario, ExchangeAmong among) {
  const std::int64_t tensor = scenario.workload.tensor, sequence = sequence_ranks(scenario);
  if (among == ExchangeAmong::Sequence) return members_on_a_host(scenario, tensor, sequence);
  if (among == ExchangeAmong::Expert) return members_on_a_host(scenario, tensor * sequence, expert_ranks(scenario));
  return members_on_a_host(scenario, /*stride=*/1, tensor);
}

}  // namespace tandem
