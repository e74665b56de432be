// More of each resource of a scenario's machine, as changes of its keys: what a run with it takes tells what the
// resource is worth. Must not know how it is run.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

struct MoreOf {
  std::string resource;               // "h2d"
  std::string words;                  // for people, behind "10% more": "bandwidth to the device"
  std::vector<std::string> settings;  // --set arguments
  std::string part_of;                // the resource that has more of this one, too: "pcie" of "h2d"; "" for none
};

// Each resource that the scenario's machine has, times `factor`: its rate, or the bytes of a memory that the scenario
// may use. Where a limit binds, it grows as well.
std::vector<MoreOf> more_of_each(const Scenario& scenario, double factor);

}  // namespace tandem
