#include "core/run/make_scheduler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/capacity.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {

Rank rank_count(const Scenario& scenario) {
  return static_cast<Rank>(std::max<std::int64_t>(scenario.workload.devices, 1));
}

std::unique_ptr<Scheduler> make_scheduler(const Scenario& scenario, const CostModel& estimate, Rank rank) {
  const PolicyEntry* policy_entry = find_policy(scenario.policy.name);
  if (policy_entry == nullptr) throw ConfigError("policy.name: no policy is called '" + scenario.policy.name + "'");
  const WorkloadEntry* workload = find_workload(scenario.workload.family);
  if (workload == nullptr)
    throw ConfigError("workload.family: no workload family is called '" + scenario.workload.family + "'");
  auto policy = policy_entry->make(scenario);
  CHECK(policy != nullptr && ranks_on_host(scenario) <= rank_count(scenario), scenario.policy.name,
        rank_count(scenario));
  GraphRequest request = policy->traits().graph;
  request.rank = rank;
  auto source = workload->make(scenario, request);
  return std::make_unique<Scheduler>(scenario, estimate, std::move(source), std::move(policy), rank,
                                     static_cast<Rank>(ranks_on_host(scenario)));
}

}  // namespace tandem
