// In which order the blocks of a tier are asked to leave it: the least recently used first. Blocks that could leave
// only if the tier below took more bytes than it can are passed over without a look at each, so that a search costs
// what it finds, however many stay. Must not know values, pools or policies.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

using BlockId = std::int32_t;

class EvictionOrder {
 public:
  // Of a block that no room below would let leave: it has the only copy, in the lowest tier.
  static constexpr std::int64_t kNoRoomHelps = std::numeric_limits<std::int64_t>::max();

  // The block is the tier's most recently used one.
  void touch(Tier tier, BlockId id);
  void remove(BlockId id);
  // Such blocks are asked only in searches that ask for them too.
  void keep(BlockId id);
  // The block could not leave for want of so many bytes below; it is asked again where more than that may be had.
  void stick(BlockId id, std::int64_t bytes);
  // Something about the block has changed: it is asked whatever there is room for.
  void revive(BlockId id) {
    if (node(id).state == State::Stuck) unstick(id);
  }

  class Search {
   public:
    // One that has found all there is.
    static Search ended();

   private:
    friend class EvictionOrder;
    std::int64_t after_ = -1;  // the stamp of the block found last
    std::array<BlockId, 2> at_{kNone, kNone};
    bool begun_ = false;
  };
  // The next block in order; kNone: there is none. Passes over those that need at least `room_below` bytes below. The
  // block found may stick, be revived or be removed before the next call; others may be revived.
  BlockId next(Tier tier, Search& search, bool kept_too, std::int64_t room_below);
  // The fewest bytes that a block needs below which the search has passed over for that; kNoRoomHelps: none has.
  std::int64_t passed_over(Tier tier, const Search& search, bool kept_too, std::int64_t room_below) const;

  // Grows with whatever may let a block of the tier leave that could not before.
  std::int64_t changes(Tier tier) const { return tiers_[static_cast<std::size_t>(tier)].changes; }
  void note_change(Tier tier) { ++tiers_[static_cast<std::size_t>(tier)].changes; }
  // Blocks found and groups of blocks looked at so far: the work of all searches.
  std::int64_t steps() const { return steps_; }

 private:
  enum class State : std::uint8_t { Absent, Listed, Revived, Stuck };
  struct Node {
    std::int64_t stamp = 0;  // of its latest use
    std::int64_t bytes = 0;  // stuck: needed below
    BlockId newer = kNone, older = kNone;
    Tier tier = Tier::Device;
    State state = State::Absent;
    bool kept = false;
  };
  using ByStamp = std::set<std::pair<std::int64_t, BlockId>>;
  // Of kept blocks, or of the others.
  struct Queue {
    BlockId oldest = kNone, newest = kNone;  // listed
    ByStamp revived;                         // whose places in the list are gone
    std::map<std::int64_t, ByStamp> stuck;   // by bytes
  };
  struct TierOrder {
    std::array<Queue, 2> queues;
    std::int64_t changes = 0;
  };

  static constexpr std::int64_t kEnd = kNoRoomHelps - 1;  // beyond all stamps

  Node& node(BlockId id) { return nodes_[static_cast<std::size_t>(id)]; }
  Queue& queue(const Node& n) { return tiers_[static_cast<std::size_t>(n.tier)].queues[n.kept ? 1 : 0]; }
  void unlink(BlockId id);
  void unstick(BlockId id);

  std::vector<Node> nodes_;  // by block
  std::array<TierOrder, kTierCount> tiers_;
  std::int64_t next_stamp_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace tandem
