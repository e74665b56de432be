// Policies one after another in one run: which may go on where another is, and what goes on. Must not know worlds, nor
// why policies are switched.
#pragma once

#include <memory>
#include <string>

#include "core/scheduler/scheduler.hpp"

namespace tandem {

// The scenario under another policy, which stays.
Scenario scenario_under(const Scenario& scenario, const PolicyOptions& policy);
// As of a run that has done so many training steps.
PolicyOptions policy_after(const Scenario& scenario, std::int32_t steps);

// Why a run of `from` cannot go on under the policy of `to`, and what is allowed; "" where it can: graphs may differ,
// but not in what they keep from step to step. Builds both workloads: throws what they throw.
std::string why_no_switch(const Scenario& from, const Scenario& to);

// Makes what goes on in a run of the scenario, which must outlive it.
Scheduler::MakeSuccessor successor_of(const Scenario& scenario, Rank rank);

}  // namespace tandem
