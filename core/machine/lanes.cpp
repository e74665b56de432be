#include "core/machine/lanes.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace tandem {

int lane_count(const HardwareProfile& profile, Engine kind) {
  const auto row = profile.lanes.find(kind);
  return row == profile.lanes.end() ? 1 : row->second.count;
}

std::int32_t claimed_cores(const HardwareProfile& profile, Engine kind) {
  if (!claims_cores(kind)) return 0;
  CHECK(profile.cores >= 1, profile.cores);
  std::int32_t cores = profile.cores;
  if (const auto measured = profile.lane_cores.find(kind); measured != profile.lane_cores.end())
    cores = static_cast<std::int32_t>(std::ceil(measured->second));
  if (const auto row = profile.lanes.find(kind); row != profile.lanes.end() && row->second.cores > 0)
    cores = row->second.cores;
  return std::clamp(cores, 1, profile.cores);
}

}  // namespace tandem
