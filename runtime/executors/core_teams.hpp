// Which cores the threads of each CPU lane run on, where lanes have teams of their own: neighbours in the machine's
// topology, and no core twice while there are enough. Must not know what lanes do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/machine/profile.hpp"

namespace tandem {

class CoreTeams {
 public:
  // Of the lanes that the profile gives some of the cores (LaneRow::cores); all others run wherever the process may.
  explicit CoreTeams(const HardwareProfile& profile);

  // The processing units that the lane's threads may use, in the topology's order; empty: all.
  std::vector<int> units_of(LaneIndex lane) const;
  // Keeps the calling thread, and those that it starts from now on, to the lane's cores. "" or what went wrong: a run
  // goes on all the same, with its threads wherever the system puts them.
  std::string pin(LaneIndex lane) const;

 private:
  std::map<LaneIndex, std::vector<int>> units_;
};

}  // namespace tandem
