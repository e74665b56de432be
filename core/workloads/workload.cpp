#include "core/workloads/workload.hpp"

#include <utility>

#include "core/base/errors.hpp"
#include "core/step/network_plan.hpp"
#include "core/step/training_source.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/workloads/common/options.hpp"

namespace tandem {

namespace {

// With all keys that the family reads. A scenario that was made in code may lack some.
WorkloadOptions complete_for(const WorkloadEntry& family, WorkloadOptions options) {
  options.keys = family.keys->completed(std::move(options.keys));
  for (const FamilyKey& key : family.keys->own)
    if (key.required && !options.keys.has(key.name))
      throw ConfigError("workload." + key.name + ": is missing; " + options.family + " needs it");
  return options;
}

}  // namespace

WorkloadOptions completed(WorkloadOptions options) {
  const WorkloadEntry* family = find_workload(options.family);
  if (family != nullptr) options.keys = family->keys->completed(std::move(options.keys));
  return options;
}

std::unique_ptr<StepSource> WorkloadEntry::make(const Scenario& scenario, const Rewrites& rewrites, Rank rank) const {
  Scenario complete = scenario;
  complete.workload = complete_for(*this, scenario.workload);
  if (source != nullptr) return source(complete, rewrites, rank);
  require_training_options(complete);
  return std::make_unique<TrainingSource>(network_plan(network(complete.workload), complete), complete,
                                          all_rewrites(complete, rewrites), rank);
}

Network network_of(const Scenario& scenario) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (family == nullptr || family->network == nullptr)
    throw ConfigError("workload.family: \"" + scenario.workload.family + "\" is no network that is trained");
  return family->network(complete_for(*family, scenario.workload));
}

}  // namespace tandem
