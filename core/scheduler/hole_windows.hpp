// Of the blocks of a memory, which of them in a row would have to move elsewhere to leave a hole of so many bytes: kept
// up to date block by block, so that the cheapest windows are found without a look at all. Must not know what blocks
// hold, or where they would go.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// Windows of one size. Each begins where a block ends, or at 0, and takes in the blocks that begin inside it. A treap
// by position whose ranges are added to as a whole: a block counts in all windows that reach it.
class HoleWindows {
 public:
  HoleWindows(std::int64_t bytes, std::int64_t capacity);

  // `pinned`: not to be moved, unless nothing else helps.
  void add(std::int64_t offset, std::int64_t bytes, bool pinned);
  void remove(std::int64_t offset);

  struct Window {
    std::int64_t moved_bytes = 0;
    std::int64_t begin = 0;
    auto operator<=>(const Window&) const = default;
  };
  // At most `most` windows with the fewest bytes in their blocks, and from the lowest offset among equals; without
  // `pinned_too`, of those without a pinned block.
  std::vector<Window> cheapest(std::size_t most, bool pinned_too);
  std::size_t size() const { return nodes_.size() - unused_.size() - 1; }  // blocks
  // Nodes looked at so far: the work of all calls.
  std::int64_t steps() const { return steps_; }

 private:
  using Index = std::int32_t;
  struct Cost {
    std::int64_t pinned = 0;  // blocks
    Window window;
    auto operator<=>(const Cost&) const = default;
  };
  struct Node {
    std::int64_t offset = -1, bytes = 0;         // of the block; the one at -1 stands for the start of the memory
    std::int64_t pinned = 0;                     // 1 or 0
    Cost cost;                                   // of the window that begins at its end
    Cost least;                                  // in its subtree, by pinned blocks first
    Window least_moved;                          // in its subtree, pinned blocks or not
    std::int64_t add_pinned = 0, add_bytes = 0;  // to all below it
    std::int64_t all_pinned = 0, all_bytes = 0;  // of the blocks of its subtree
    std::uint32_t priority = 0;
    Index left = 0, right = 0;
    std::int64_t end() const { return offset < 0 ? 0 : offset + bytes; }
  };
  struct Sum {
    std::int64_t pinned = 0, bytes = 0;
  };

  Node& at(Index i) { return nodes_[static_cast<std::size_t>(i)]; }
  Index make_node(std::int64_t offset, std::int64_t bytes, bool pinned);
  void push(Index i);
  void pull(Index i);
  void shift(Index i, Sum by);
  // Those whose blocks begin before `offset`, or whose windows do, and the others.
  std::pair<Index, Index> split_blocks(Index i, std::int64_t offset);
  std::pair<Index, Index> split_windows(Index i, std::int64_t begin);
  Index merge(Index a, Index b);
  Sum before(std::int64_t offset);
  void add_to_windows(std::int64_t offset, Sum by);

  std::int64_t bytes_, capacity_;
  std::vector<Node> nodes_;  // 0: none
  std::vector<Index> unused_;
  Index root_ = 0;
  std::uint32_t random_ = 2463534242U;
  std::int64_t steps_ = 0;
};

}  // namespace tandem
