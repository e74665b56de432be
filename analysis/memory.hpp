// Memory over time, by rank, tier and what the bytes are, from the places that commands name and the release notes.
// Must not know pools, formats or worlds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/timeline.hpp"

namespace tandem {

// The tensor roles, and the workspace of running ops.
inline constexpr int kUseCount = kRoleCount + 1;
inline constexpr int kWorkspaceUse = kRoleCount;
std::string_view name_of_use(int use);

// Bytes in use from `at_ns` on, until the next point.
struct MemoryPoint {
  std::int64_t at_ns = 0;
  std::array<std::int64_t, kUseCount> bytes{};
  std::int64_t total() const;
};

using TierSeries = std::vector<MemoryPoint>;  // times increase; starts at 0 where not empty
struct MemorySeries {
  std::array<TierSeries, kTierCount> tiers;
  const TierSeries& of(Tier tier) const { return tiers[static_cast<std::size_t>(tier)]; }
};

// Bytes count from the start of the command that first writes them to the moment that their release takes effect. They
// are tensors' own bytes: a pool charges in issue order and rounds up, so its peak may be higher.
MemorySeries memory_over_time(const RankTimeline& rank);

// At most `limit` points: in each of limit equal spans of time, the point with the most bytes.
TierSeries thinned(const TierSeries& series, std::size_t limit);

}  // namespace tandem
