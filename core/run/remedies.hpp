// What may make a scenario fit into less memory: changes of its keys, as one would write them. Whether one helps, a run
// with it tells. Must not know how that is tried.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

struct Remedy {
  std::string words;                  // for people: "workload.loss_tiles: 4"
  std::vector<std::string> settings;  // the same as --set arguments
};

// Remedies of one kind.
struct Remedies {
  std::vector<Remedy> choices;  // in the order in which they are to be preferred
  bool graded = true;           // each saves more than the one before: if the last does not help, none does
};

// Kinds in the order in which people like them: what leaves results and steps as they are comes first. Some may be
// refused by the scenario's family or policy.
std::vector<Remedies> remedies(const Scenario& scenario);
// Several at once, where none helps alone: all that leave results as they are, then with smaller states, then under
// other policies. Some may be refused, and not all may be needed.
std::vector<std::vector<Remedy>> joint_remedies(const Scenario& scenario);

}  // namespace tandem
