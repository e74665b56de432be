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
namespace {

// Ops and values have 32-bit numbers. A layer has a forward, a backward and an update a step, which make up to 60
// values. A resumed run counts from its first step again.
void require_numbers(const Scenario& scenario) {
  constexpr std::int64_t kValuesOfLayer = 64, kMost = std::int64_t{1} << 31;
  const WorkloadOptions& w = scenario.workload;
  const std::int64_t of_step =
      kValuesOfLayer * w.keys.integer_or("layers", 1) * std::max<std::int64_t>(w.micro_batches, 1);
  const std::int64_t most_steps = kMost / of_step;
  if (scenario.steps - scenario.first_step <= most_steps) return;
  throw ConfigError("steps: a run of " + std::to_string(scenario.steps - scenario.first_step) +
                    " steps of so many layers and micro-batches has more ops than can be numbered; at most " +
                    std::to_string(scenario.first_step + most_steps) +
                    " steps; with checkpoint.directory set, a longer training goes on from there with --resume");
}

}  // namespace

Rank rank_count(const Scenario& scenario) {
  return static_cast<Rank>(std::max<std::int64_t>(scenario.workload.devices, 1));
}

std::unique_ptr<Scheduler> make_scheduler(const Scenario& scenario, const CostModel& estimate, Rank rank) {
  const PolicyEntry* policy_entry = find_policy(scenario.policy.name);
  if (policy_entry == nullptr) throw ConfigError("policy.name: no policy is called '" + scenario.policy.name + "'");
  const WorkloadEntry* workload = find_workload(scenario.workload.family);
  if (workload == nullptr)
    throw ConfigError("workload.family: no workload family is called '" + scenario.workload.family + "'");
  require_numbers(scenario);
  auto policy = policy_entry->make(scenario);
  CHECK(policy != nullptr && ranks_on_host(scenario) <= rank_count(scenario), scenario.policy.name,
        rank_count(scenario));
  auto source = workload->make(scenario, policy->traits().rewrites, rank);
  return std::make_unique<Scheduler>(scenario, estimate, std::move(source), std::move(policy), rank,
                                     static_cast<Rank>(ranks_on_host(scenario)));
}

}  // namespace tandem
