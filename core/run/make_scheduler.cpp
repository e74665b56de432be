#include "core/run/make_scheduler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/run/succession.hpp"
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

const WorkloadEntry& workload_of(const Scenario& scenario) {
  const WorkloadEntry* workload = find_workload(scenario.workload.family);
  if (workload == nullptr)
    throw ConfigError("workload.family: no workload family is called '" + scenario.workload.family + "'");
  require_numbers(scenario);
  return *workload;
}

std::unique_ptr<Scheduler> scheduler_under(const Scenario& scenario, const CostModel& estimate, Rank rank,
                                           const WorkloadEntry& workload, std::unique_ptr<Policy> policy) {
  CHECK(policy != nullptr, scenario.policy.name);
  auto source = workload.make(scenario, policy->traits().rewrites, rank);
  return std::make_unique<Scheduler>(scenario, estimate, std::move(source), std::move(policy), rank,
                                     static_cast<Rank>(ranks_on_host(scenario)));
}

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const Scenario& scenario, const CostModel& estimate, Rank rank) {
  const PolicyOptions options = policy_after(scenario, scenario.first_step);
  const PolicyEntry* policy_entry = find_policy(options.name);
  if (policy_entry == nullptr) throw ConfigError("policy.name: no policy is called '" + options.name + "'");
  const WorkloadEntry& workload = workload_of(scenario);
  std::shared_ptr<const Scenario> own;  // of a run that another policy began, or of a stage of a pipeline
  if (options != scenario.policy || scenario.parallel.pipeline > 1) {
    auto under = std::make_shared<Scenario>(scenario);
    under->policy = options;
    under->parallel.rank = rank;
    own = std::move(under);
  }
  const Scenario& under = own != nullptr ? *own : scenario;
  auto scheduler = scheduler_under(under, estimate, rank, workload, policy_entry->make(under));
  scheduler->allow_switches(successor_of(scenario, rank), std::move(own));
  return scheduler;
}

std::unique_ptr<Scheduler> make_scheduler(const Scenario& scenario, const CostModel& estimate, Rank rank,
                                          const MakePolicy& make) {
  CHECK(scenario.switches.empty(), scenario.policy.name);
  require_suits_offloading(scenario);
  return scheduler_under(scenario, estimate, rank, workload_of(scenario), make(scenario, rank));
}

}  // namespace tandem
