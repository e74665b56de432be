// The search for memory that is enough.
#include <algorithm>

#include "core/run/advice.hpp"

namespace tandem {
namespace {

constexpr int kMostRaises = 16, kMostHalvings = 8;

Scenario with_memory(const Scenario& scenario, const std::array<std::int64_t, kTierCount>& bytes) {
  Scenario changed = scenario;
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (bytes[tier] == 0) continue;
    if (tier == static_cast<std::size_t>(Tier::Device)) changed.limits.device_bytes = bytes[tier];
    if (tier == static_cast<std::size_t>(Tier::HostPinned)) changed.limits.host_bytes = bytes[tier];
    if (tier == static_cast<std::size_t>(Tier::Disk)) changed.limits.disk_bytes = bytes[tier];
    auto& capacity = changed.machine.tiers[tier].capacity_bytes;
    capacity = std::max(capacity, bytes[tier]);
  }
  return changed;
}

// A size between two that a limit can be.
std::int64_t between(std::int64_t low, std::int64_t high) { return (low + (high - low) / 2) / kPageBytes * kPageBytes; }

}  // namespace

Enough find_enough(const Scenario& scenario, const OutOfRoom::Figures& refused, const Trial& trial) {
  Enough enough;
  OutOfRoom::Figures last = refused;
  std::array<std::int64_t, kTierCount> low{};  // known to be too little
  std::array<std::int64_t, kTierCount> step{};
  int raised_tiers = 0, raises = 0;
  for (; raises < kMostRaises; ++raises) {
    const auto tier = static_cast<std::size_t>(last.tier);
    raised_tiers += low[tier] == 0;
    low[tier] = std::max<std::int64_t>(last.capacity_bytes, 1);
    // What is refused again and again is brought to fit in few steps, and then halved back.
    enough.bytes[tier] = std::max(last.least_bytes, last.capacity_bytes + step[tier]);
    step[tier] = std::max(4 * step[tier], (last.capacity_bytes / 64 + kPageBytes) / kPageBytes * kPageBytes);
    const TrialResult result = trial(with_memory(scenario, enough.bytes));
    enough.found = result.kind == TrialResult::Kind::Done;
    if (result.kind != TrialResult::Kind::Refused) break;
    last = result.figures;
  }
  if (!enough.found) {
    enough.bytes = {};
    enough.bytes[static_cast<std::size_t>(refused.tier)] = refused.least_bytes;
    return enough;
  }
  if (raised_tiers > 1 || raises == 0) return enough;
  std::int64_t& high = enough.bytes[static_cast<std::size_t>(refused.tier)];
  std::int64_t too_little = low[static_cast<std::size_t>(refused.tier)];
  for (int i = 0; i < kMostHalvings && high - too_little > std::max(high / 256, 2 * kPageBytes); ++i) {
    auto bytes = enough.bytes;
    const std::int64_t middle = bytes[static_cast<std::size_t>(refused.tier)] = between(too_little, high);
    const TrialResult result = trial(with_memory(scenario, bytes));
    if (result.kind == TrialResult::Kind::Unknown) break;
    (result.kind == TrialResult::Kind::Done ? high : too_little) = middle;
  }
  return enough;
}

}  // namespace tandem
