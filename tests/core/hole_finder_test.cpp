// Cheapest windows against a look at every block, and searches for what to evict that pass over what cannot leave.
#include "core/scheduler/hole_finder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/scheduler/eviction_order.hpp"

namespace tandem {
namespace {

struct Placed {
  BlockId id = kNone;
  std::int64_t bytes = 0;
  bool pinned = false;
};

// By the definition: from each end of a block on, those that begin before so many bytes are over.
std::vector<HoleWindows::Window> by_looking_at_all(const std::map<std::int64_t, Placed>& blocks, std::int64_t bytes,
                                                   std::int64_t capacity, std::size_t most, bool pinned_too) {
  std::vector<std::int64_t> begins{0};
  for (const auto& [offset, block] : blocks) begins.push_back(offset + block.bytes);
  std::vector<HoleWindows::Window> found;
  for (const std::int64_t begin : begins) {
    HoleWindows::Window window{0, begin};
    bool movable = begin + bytes <= capacity;
    for (auto it = blocks.lower_bound(begin); it != blocks.end() && it->first < begin + bytes; ++it) {
      window.moved_bytes += it->second.bytes;
      movable = movable && (pinned_too || !it->second.pinned);
    }
    if (movable) found.push_back(window);
  }
  std::sort(found.begin(), found.end());
  found.resize(std::min(found.size(), most));
  return found;
}

TEST(HoleFinder, FindsTheCheapestWindows) {
  constexpr std::int64_t kCapacity = 1000, kSizes[] = {10, 64, 300};
  std::mt19937 random(1);
  HoleFinder finder;
  std::map<std::int64_t, Placed> blocks;
  for (int round = 0; round < 3000; ++round) {
    const auto offset = static_cast<std::int64_t>(random() % kCapacity);
    const auto next = blocks.lower_bound(offset);
    if (next != blocks.end() && random() % 2 == 0) {
      finder.remove(next->second.id);
      blocks.erase(next);
    } else if (next == blocks.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= offset) {
      const std::int64_t room = (next == blocks.end() ? kCapacity : next->first) - offset;
      if (room == 0) continue;
      const Placed block{round, 1 + static_cast<std::int64_t>(random()) % std::min<std::int64_t>(room, 40),
                         random() % 8 == 0};
      blocks[offset] = block;
      finder.add(block.id, {offset, block.bytes, block.pinned});
    }
    if (round % 3 != 0) continue;
    const std::int64_t bytes = kSizes[random() % 3];
    const bool pinned_too = random() % 2 == 0;
    ASSERT_EQ(finder.cheapest(bytes, kCapacity, 16, pinned_too),
              by_looking_at_all(blocks, bytes, kCapacity, 16, pinned_too))
        << "round " << round;
  }
}

TEST(HoleFinder, LooksAtFewOfManyBlocks) {
  constexpr std::int64_t kBlocks = 10'000;
  HoleFinder finder;
  for (std::int64_t i = 0; i < kBlocks; ++i) finder.add(static_cast<BlockId>(i), {i * 10, 9, false});
  (void)finder.cheapest(100, kBlocks * 10, 16, false);
  const std::int64_t before = finder.steps();
  for (BlockId i = 0; i < 100; ++i) {
    finder.remove(i * 100);
    (void)finder.cheapest(100, kBlocks * 10, 16, false);
    finder.add(i * 100, {i * 1000, 9, false});
  }
  EXPECT_LT(finder.steps() - before, 100 * 1000);
}

TEST(EvictionOrder, AsksTheLeastRecentlyUsedFirst) {
  EvictionOrder order;
  for (const BlockId id : {0, 1, 2, 3}) order.touch(Tier::Device, id);
  order.touch(Tier::Device, 1);
  order.keep(0);
  const auto all = [&](bool kept_too, std::int64_t room) {
    std::vector<BlockId> found;
    EvictionOrder::Search search;
    for (BlockId id; (id = order.next(Tier::Device, search, kept_too, room)) != kNone;) found.push_back(id);
    return found;
  };
  EXPECT_EQ(all(false, 100), (std::vector<BlockId>{2, 3, 1}));
  EXPECT_EQ(all(true, 100), (std::vector<BlockId>{0, 2, 3, 1}));
  order.stick(3, 50);
  order.stick(2, EvictionOrder::kNoRoomHelps);
  EXPECT_EQ(all(false, EvictionOrder::kNoRoomHelps), (std::vector<BlockId>{3, 1}));
  EXPECT_EQ(all(false, 50), (std::vector<BlockId>{1}));
  order.revive(2);  // at its old place
  EXPECT_EQ(all(false, 51), (std::vector<BlockId>{2, 3, 1}));
  order.touch(Tier::Device, 3);
  order.remove(1);
  EXPECT_EQ(all(true, 0), (std::vector<BlockId>{0, 2, 3}));
}

TEST(EvictionOrder, PassesOverWhatCannotLeaveInOneStepEach) {
  constexpr BlockId kBlocks = 10'000;
  EvictionOrder order;
  for (BlockId id = 0; id < kBlocks; ++id) order.touch(Tier::HostPinned, id);
  for (BlockId id = 0; id < kBlocks - 1; ++id) order.stick(id, 64 * (1 + id % 3));
  EvictionOrder::Search search;
  EXPECT_EQ(order.next(Tier::HostPinned, search, true, 64), kBlocks - 1);
  EXPECT_EQ(order.passed_over(Tier::HostPinned, search, true, 65), 128);
  EXPECT_LT(order.steps(), 10);
}

}  // namespace
}  // namespace tandem
