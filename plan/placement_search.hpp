// How a question about generating is answered: blocks of texts by FlexGen's linear program, the best of them simulated,
// and from there step by step to what is faster; beside it what other policies come to. The same answer whatever the
// number of cores. Must not know how candidates are simulated.
#pragma once

#include <functional>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/placement_program.hpp"
#include "plan/search.hpp"
#include "plan/space.hpp"

namespace tandem {

struct FoundPlacements {
  Space space;  // a policy, and what was chosen with it
  Found found;
  // What holds the pick up, by the program at its block. Empty where that is of another policy.
  std::vector<Hold> holds;
};

// As of Candidates::runs, where no run is too slow.
using RunAll = std::function<std::vector<CandidateRun>(const std::vector<Settings>&)>;
FoundPlacements search_placements(const Question& question, const RunAll& run, const Effort& effort);

}  // namespace tandem
