// Names of the registered policies, by what their graphs promise. Must not know what they do.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/policies.hpp"
#include "core/scheduler/policy.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {

// With default options: those that train as plain training does, to the bit, or the others.
inline std::vector<std::string> policies_that_are(bool exact) {
  std::vector<std::string> names;
  for (const PolicyEntry* entry : policies()) {
    const std::string name(entry->name);
    const Scenario scenario = gpt_scenario(name, std::int64_t{1} << 30);
    if (approximate(entry->make(scenario)->traits().rewrites) != exact) names.push_back(name);
  }
  return names;
}
inline std::vector<std::string> exact_policies() { return policies_that_are(/*exact=*/true); }
inline std::vector<std::string> approximate_policies() { return policies_that_are(/*exact=*/false); }

inline bool has_option(const std::string& policy, std::string_view option) {
  const std::vector<std::string_view>& options = find_policy(policy)->options;
  return std::find(options.begin(), options.end(), option) != options.end();
}

// Those that choose where work of a step is done, and leave the rest to another policy.
inline bool places_work(const std::string& policy) {
  return has_option(policy, "states") || has_option(policy, "cpu_share");
}

}  // namespace tandem::testing
