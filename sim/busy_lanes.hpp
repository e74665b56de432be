// A set of one rank's lanes. Must not know what they do.
#pragma once

#include <bit>
#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

class BusyLanes {
 public:
  void add(LaneIndex lane) { bits_ |= bit(lane); }
  void remove(LaneIndex lane) { bits_ &= ~bit(lane); }
  bool contains(LaneIndex lane) const { return (bits_ & bit(lane)) != 0; }
  int count(Engine kind) const {
    int count = 0;
    for (int n = 0; n < kMostLanesOfAKind; ++n) count += contains({kind, n});
    return count;
  }
  // As bits of engines.
  std::uint16_t kinds() const {
    std::uint64_t kinds = 0;
    for (std::uint64_t rest = bits_; rest != 0; rest >>= kEngineCount) kinds |= rest & kAllKinds;
    return static_cast<std::uint16_t>(kinds);
  }
  // In order.
  template <typename F>
  void for_each(F&& visit) const {
    for (std::uint64_t rest = bits_; rest != 0; rest &= rest - 1)
      visit(LaneIndex::at(static_cast<std::size_t>(std::countr_zero(rest))));
  }

 private:
  static_assert(kLaneCount <= 64, "a bit for each lane");
  static constexpr std::uint64_t kAllKinds = (std::uint64_t{1} << kEngineCount) - 1;
  static constexpr std::uint64_t bit(LaneIndex lane) { return std::uint64_t{1} << lane.place(); }
  std::uint64_t bits_ = 0;
};

}  // namespace tandem
