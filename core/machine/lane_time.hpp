// What was learnt of a lane while training, over what the rest of the profile says.
#pragma once

#include "core/machine/profile.hpp"

namespace tandem {

inline double lane_time(const HardwareProfile& profile, Engine lane) {
  if (profile.lane_times.empty()) return 1;
  const auto learnt = profile.lane_times.find(lane);
  return learnt == profile.lane_times.end() ? 1 : learnt->second;
}

}  // namespace tandem
