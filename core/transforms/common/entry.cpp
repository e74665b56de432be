#include "core/transforms/common/entry.hpp"

#include <algorithm>
#include <utility>

namespace tandem {

Network transformed(Network network, const WorkloadOptions& workload) {
  for (const bool last : {false, true})
    for (const TransformEntry* entry : transforms())
      if (entry->on_network != nullptr && entry->network_last == last)
        network = entry->on_network(std::move(network), workload);
  return network;
}

std::vector<FamilyKey> parallel_keys() {
  std::vector<FamilyKey> keys;
  for (const TransformEntry* entry : transforms())
    if (entry->keys != nullptr) keys.insert(keys.end(), entry->keys->begin(), entry->keys->end());
  return keys;
}

StepSizes of_rank(StepSizes whole, const Scenario& scenario, const Rewrites& rewrites, Rank rank) {
  for (const TransformEntry* entry : transforms()) {
    if (entry->of_rank == nullptr) continue;
    auto divide = entry->of_rank(scenario, rewrites, rank);
    if (divide == nullptr) continue;
    whole.plan_of = [plan_of = std::move(whole.plan_of), divide](std::int64_t sizes) { return divide(plan_of(sizes)); };
  }
  return whole;
}

Rewrites all_rewrites(const Scenario& scenario, const Rewrites& of_policy) {
  Rewrites all = of_policy;
  for (const TransformEntry* entry : transforms())
    if (entry->of_scenario != nullptr)
      if (auto rewrite = entry->of_scenario(scenario, of_policy)) all.push_back(std::move(rewrite));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->order() < b->order(); });
  return all;
}

}  // namespace tandem
