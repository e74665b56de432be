// The registered policies: those of core/policies. Must not know which there are (CMake's generated table does).
#pragma once

#include <string_view>
#include <vector>

#include "core/scheduler/policy.hpp"

namespace tandem {

// All policies in alphabetical order.
const std::vector<const PolicyEntry*>& policies();
// Null where none is called so.
const PolicyEntry* find_policy(std::string_view name);

}  // namespace tandem
