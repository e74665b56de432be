// How a policy that generates is registered: beside those that train, which have no use for it. Must not know which
// there are.
#pragma once

#include "core/scheduler/policy.hpp"

// The last line of core/policies/generation/<name>.cpp, as TANDEM_POLICY is of one that trains.
#define TANDEM_GENERATING_POLICY(NAME, CLASS, SUMMARY, ...)                                             \
  namespace tandem {                                                                                    \
  extern const PolicyEntry NAME##_generating_policy_entry;                                              \
  const PolicyEntry NAME##_generating_policy_entry{#NAME, SUMMARY, &make_policy<CLASS>, {__VA_ARGS__}}; \
  }
