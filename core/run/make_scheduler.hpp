// From a checked scenario to the scheduler of one of its ranks: looks the policy and the workload family up by name.
// Must not know worlds.
#pragma once

#include <functional>
#include <memory>

#include "core/scenario/ranks.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {

// `scenario` and `estimate` must outlive the scheduler. Throws ConfigError for a policy or a family that this build
// lacks, or for options that they refuse.
std::unique_ptr<Scheduler> make_scheduler(const Scenario& scenario, const CostModel& estimate, Rank rank = 0);

// The policy of a rank that no file of this build has: its name in the scenario is for people.
using MakePolicy = std::function<std::unique_ptr<Policy>(const Scenario& scenario, Rank rank)>;
// The same under such a policy, which nothing replaces during the run: the scenario has no switches.
std::unique_ptr<Scheduler> make_scheduler(const Scenario& scenario, const CostModel& estimate, Rank rank,
                                          const MakePolicy& make);

}  // namespace tandem
