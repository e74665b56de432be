// Which ranks make a checkpoint together. Must not know what is in it.
#pragma once

#include "core/base/rank_group.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Copies have the same states, so that those of one save them, or those that divide them among them.
bool saves_states(const Scenario& scenario, Rank rank);

// The stages of the rank's pipeline, each with all that divide its states, as a group of their own beside what else
// these do together.
RankGroup saving_group(const Scenario& scenario, Rank rank);

}  // namespace tandem
