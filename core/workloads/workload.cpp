#include "core/workloads/workload.hpp"

#include <utility>

#include "core/base/errors.hpp"

namespace tandem {

WorkloadOptions completed(WorkloadOptions options) {
  const WorkloadEntry* family = find_workload(options.family);
  if (family != nullptr) options.keys = family->keys->completed(std::move(options.keys));
  return options;
}

std::unique_ptr<StepSource> WorkloadEntry::make(const Scenario& scenario, const GraphRequest& request) const {
  Scenario complete = scenario;
  complete.workload = completed(scenario.workload);
  for (const FamilyKey& key : keys->own)
    if (key.required && !complete.workload.keys.has(key.name))
      throw ConfigError("workload." + key.name + ": is missing; " + complete.workload.family + " needs it");
  return factory(complete, request);
}

}  // namespace tandem
