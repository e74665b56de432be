// Where in a memory the fewest bytes have to move for a hole: the blocks by offset, and for each size that is asked for
// its windows, which take in what has changed when they are asked for again. Must not know what blocks hold.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/scheduler/eviction_order.hpp"
#include "core/scheduler/hole_windows.hpp"

namespace tandem {

class HoleFinder {
 public:
  struct Place {
    std::int64_t offset = 0, bytes = 0;
    bool pinned = false;  // not to be moved, unless nothing else helps
    bool operator==(const Place&) const = default;
  };
  // Places of blocks that were elsewhere, or nowhere. All that go are taken out first.
  void remove(BlockId id);
  void add(BlockId id, Place place);
  const Place* place(BlockId id) const;  // null: none

  // A run of bytes that is free once its blocks are gone.
  struct Hole {
    std::int64_t begin = 0, end = 0;
    std::vector<BlockId> blocks;  // by offset
  };
  // For a hole of so many bytes in a memory of this capacity, as HoleWindows::cheapest().
  std::vector<HoleWindows::Window> cheapest(std::int64_t bytes, std::int64_t capacity, std::size_t most,
                                            bool pinned_too);
  Hole hole(std::int64_t begin, std::int64_t bytes, std::int64_t capacity);

  // Nodes of windows and blocks looked at so far: the work of all calls.
  std::int64_t steps() const { return steps_; }

 private:
  struct Change {
    std::int64_t offset = 0, bytes = 0;  // 0 bytes: a block is gone
    bool pinned = false;
  };
  struct Sized {
    HoleWindows windows;
    std::size_t seen = 0;    // of the changes
    std::int64_t asked = 0;  // the call that asked last
  };
  Sized& sized(std::int64_t bytes, std::int64_t capacity);
  void note(Change change);

  std::map<std::int64_t, BlockId> by_offset_;
  std::vector<Place> places_;  // by block; 0 bytes: none
  std::vector<Change> changes_;
  std::map<std::int64_t, Sized> sizes_;
  std::int64_t calls_ = 0, steps_ = 0;
};

}  // namespace tandem
