// How a policy that sees to a part of a run gets the one that sees to the rest.
#include "core/base/errors.hpp"
#include "core/policies/common/places.hpp"
#include "core/run/policies.hpp"

namespace tandem {

std::unique_ptr<Policy> policy_named(const Scenario& scenario, const std::string& name) {
  const PolicyEntry* entry = find_policy(name);
  if (entry == nullptr)
    throw ConfigError("policy.states: \"" + name +
                      "\" is no policy; allowed: auto, or one that `tandem list policies` names");
  return entry->make(scenario);
}

}  // namespace tandem
