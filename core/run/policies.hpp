// The registered policies: those of core/policies. Must not know which there are (CMake's generated table does).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

// Those that train, in alphabetical order; and those of core/policies/generation, which only generate.
const std::vector<const PolicyEntry*>& policies();
const std::vector<const PolicyEntry*>& generating_policies();
// Null where none is called so.
const PolicyEntry* find_training_policy(std::string_view name);
const PolicyEntry* find_generating_policy(std::string_view name);
const PolicyEntry* find_policy(std::string_view name);  // of both kinds
// Both, one after the other.
std::vector<const PolicyEntry*> all_policies();
std::vector<std::string> names_of(const std::vector<const PolicyEntry*>& policies);
// Of those that a scenario may be compared under: that train, or that generate and two that run anything as it comes.
std::vector<std::string> policies_for(const Scenario& scenario);

}  // namespace tandem
