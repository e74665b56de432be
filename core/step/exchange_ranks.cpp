#include "core/step/exchange_ranks.hpp"

#include "core/scenario/layer_ranks.hpp"

namespace tandem {

RankGroup exchange_group(const Scenario& scenario, ExchangeAmong among, Rank rank) {
  if (among == ExchangeAmong::Sequence) return sequence_group(scenario, rank);
  if (among == ExchangeAmong::Hidden) return hidden_group(scenario, rank);
  return among == ExchangeAmong::Expert ? expert_group(scenario, rank) : columns_group(scenario, rank);
}

// Ranks that divide a layer's columns stand next to each other, then those that divide its hidden width, then those
// that divide a sample, then those with samples of their own.
std::int64_t exchange_members_on_a_host(const Scenario& scenario, ExchangeAmong among) {
  const std::int64_t tensor = scenario.workload.tensor, sequence = sequence_ranks(scenario);
  if (among == ExchangeAmong::Sequence) return members_on_a_host(scenario, tensor, sequence);
  if (among == ExchangeAmong::Expert) return members_on_a_host(scenario, tensor * sequence, expert_ranks(scenario));
  const std::int64_t hidden = hidden_ranks(scenario), columns = tensor / hidden;
  if (among == ExchangeAmong::Hidden) return members_on_a_host(scenario, columns, hidden);
  return members_on_a_host(scenario, /*stride=*/1, columns);
}

}  // namespace tandem
