// Which ranks make a checkpoint together. Must not know what is in it.
#pragma once

#include "core/base/rank_group.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Copies have the same states, so that those of one save them, or those that divide them among them.
bool saves_states(const Scenario& scenario, Rank rank);

// All ranks that save, stage by stage of the pipeline, as a group of their own beside what else these do together.
RankGroup saving_group(const Scenario& scenario);

// Of a rank that saves: how many of its stage do, and its place among them.
struct SavingPart {
  std::int64_t ranks = 1, own = 0;
};
SavingPart saving_part(const Scenario& scenario, Rank rank);

}  // namespace tandem
