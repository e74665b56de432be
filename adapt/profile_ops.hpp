// A hardware profile's text with other measured ops in it. Must not know who measured them, nor files.
#pragma once

#include <string>

#include "adapt/op_learner.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

inline constexpr std::size_t kMostMeasuredOps = 1024;  // of a profile's `ops`

// The profile's rows with those that were learnt. What was learnt later replaces a row's times, unless the op ran
// beside others then; launches that were not timed this time stay as they were. Null `known`: no rows.
MeasuredOps with_learnt(const MeasuredOps* known, const LearntOps& learnt);

// Without ops on the CPU where the scenario's run had fewer cores for them than its machine has: a profile's rows are
// of all.
LearntOps of_all_cores(LearntOps learnt, const Scenario& scenario);

// The profile's own text with these rows as its `ops`, and with `name` if that is not empty. Throws ConfigError where
// that would be no profile: more than kMostMeasuredOps rows.
std::string with_ops(const HardwareProfile& profile, const MeasuredOps& ops, const std::string& name);

}  // namespace tandem
