// Where bytes are: blocks of pool memory, which value's bytes each part of a block holds, and who last touched them.
// All hazards (read after write, write after read, reuse of storage) follow from a block's segments. Knows no policy.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "core/base/forgetting_vector.hpp"
#include "core/base/ids.hpp"
#include "core/graph/graph.hpp"
#include "core/scheduler/eviction_order.hpp"
#include "core/scheduler/pool.hpp"

namespace tandem {

inline constexpr std::int64_t kUnguarded = -1;

// A stretch of a block with one content and one history.
struct Segment {
  ByteRange range;          // in bytes of the value
  ValueId content = kNone;  // the value whose bytes are, or will be after `writer`, here
  Use writer;
  Fence readers;  // since `writer`
};

// Storage of a byte range of a value (and, when updated in place, of the versions that follow it).
struct Block {
  Tier tier = Tier::Device;
  std::int64_t offset = 0;
  ByteRange range;                                      // of the value; `offset` is where range.first lies
  boost::container::small_vector<ValueId, 2> holders;   // values that refer to it: two during an in-place update
  bool home = false;                                    // a persistent tensor's own slot: not evicted
  std::int64_t guard = kUnguarded;                      // operand of the decision of this number: not evicted by it
  boost::container::small_vector<Segment, 1> segments;  // cover `range`, in order

  std::int64_t address(std::int64_t value_byte) const { return offset + value_byte - range.first; }
  bool covers(ByteRange r) const { return range.first <= r.first && r.end() <= range.end(); }
};

class Residency {
 public:
  Residency() = default;

  // A block of nothing yet, whose first writer waits for what last used its bytes.
  BlockId add(ValueId holder, Tier tier, std::int64_t offset, ByteRange range, const Fence& last_users);
  void remove(BlockId id);
  Block& block(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  const Block& block(BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }

  // Blocks of the device that were added, removed, written or moved since the last call; the first time, all.
  std::vector<BlockId> changed_on_device();
  void note_change(BlockId id);

  template <typename F>
  void for_each(Tier tier, F&& f) const {  // f(id, block); looks at all blocks
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].tier == tier && !blocks_[i].holders.empty()) f(static_cast<BlockId>(i), blocks_[i]);
  }

  // Makes room for the values of a graph that has grown.
  void grow(std::int32_t value_count) { places_.grow(static_cast<std::size_t>(value_count), kNowhere); }
  // Of a value that is nowhere, and will not be asked for again.
  void forget(ValueId value) { places_.forget(static_cast<std::size_t>(value), kNowhere); }
  bool is_nowhere(ValueId value) const { return places_[static_cast<std::size_t>(value)] == kNowhere; }
  BlockId& at(ValueId value, Tier tier) {
    return places_[static_cast<std::size_t>(value)][static_cast<std::size_t>(tier)];
  }
  BlockId at(ValueId value, Tier tier) const {
    return places_[static_cast<std::size_t>(value)][static_cast<std::size_t>(tier)];
  }

  // True if `range` of the value is in the tier, or will be once issued commands are done.
  bool valid(ValueId value, Tier tier, ByteRange range) const {
    const BlockId id = at(value, tier);
    if (id == kNone) return false;
    const Block& b = block(id);
    if (b.segments.size() == 1) return b.segments.front().content == value && b.covers(range);
    return missing(value, tier, range).empty();
  }
  bool arrived(ValueId value, Tier tier, ByteRange range, const LaneProgress& progress) const;
  // The parts of `range` that are not valid in the tier.
  boost::container::small_vector<ByteRange, 2> missing(ValueId value, Tier tier, ByteRange range) const;

  // Splits segments so that borders lie at both ends of `range`; calls f(segment) for each one inside.
  template <typename F>
  void for_range(BlockId id, ByteRange range, F&& f) {
    Block& b = block(id);
    if (b.segments.size() != 1 || b.segments.front().range != range) split(b, range);
    for (Segment& segment : b.segments)
      if (segment.range.first >= range.first && segment.range.end() <= range.end()) f(segment);
  }

  // Of the blocks that are not homes.
  EvictionOrder& order() { return order_; }
  const EvictionOrder& order() const { return order_; }
  void touch(BlockId id) {
    if (!block(id).home) order_.touch(block(id).tier, id);
  }
  // A copy of the value has come, gone or changed: what kept its blocks from being evicted may no longer hold.
  void changed(ValueId value);

 private:
  static void split(Block& block, ByteRange range);
  using Places = std::array<BlockId, kTierCount>;
  static constexpr Places kNowhere = {kNone, kNone, kNone, kNone};

  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  ForgettingVector<Places> places_;  // by value
  EvictionOrder order_;
  std::vector<BlockId> changed_on_device_;
  std::vector<bool> noted_;  // by block: it is among them
  bool follows_device_ = false;
};

}  // namespace tandem
