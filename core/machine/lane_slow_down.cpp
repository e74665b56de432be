#include "core/machine/lane_slow_down.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr double kLeastFactor = 1e-9;  // whatever the profile's factors are, a duration stays positive

// What the busy lanes want of the cores, over what there is.
double core_shortage(const HardwareProfile& profile, Engine lane, std::uint16_t busy) {
  const auto own = profile.lane_cores.find(lane);
  if (own == profile.lane_cores.end() || own->second == 0) return 1;
  double wanted = 0;
  for (const auto& [other, cores] : profile.lane_cores)
    if (busy & engine_bit(other)) wanted += cores;
  CHECK(profile.cores >= 1, profile.cores);
  return std::max(1.0, wanted / profile.cores);
}

}  // namespace

// Slow-downs by several lanes add up: each takes its own share of what the lanes have in common.
double lane_slow_down(const HardwareProfile& profile, Engine lane, std::uint16_t busy) {
  CHECK(busy & engine_bit(lane), name_of(lane), "is slowed down and not busy");
  double factor = 1;
  for (const auto& [pair, by_one] : profile.interference)
    if (pair.first == lane && pair.second != lane && (busy & engine_bit(pair.second))) factor += by_one - 1;
  return std::max(factor, kLeastFactor) * core_shortage(profile, lane, busy);
}

}  // namespace tandem
