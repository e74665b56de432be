// Pools: capacity, alignment, fences, and that random traffic never overlaps.
#include "core/scheduler/pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tandem {
namespace {

LaneProgress nothing_finished() {
  LaneProgress progress;
  progress.fill(kNoCommand);
  return progress;
}

TEST(Pool, RefusesWhatExceedsTheCapacity) {
  Pool pool(1000, 64);  // 960 usable: whole units of the alignment
  Fence waits;
  EXPECT_EQ(pool.capacity_bytes(), 960);
  EXPECT_TRUE(pool.allocate(900, End::Low, nothing_finished(), waits));
  EXPECT_FALSE(pool.allocate(1, End::Low, nothing_finished(), waits));
  EXPECT_EQ(pool.peak_bytes(), 960);
}

TEST(Pool, RoundsBlocksToPowersOfTwo) {
  Pool pool(1024, 64, 0, Pool::Blocks::PowersOfTwo);
  Fence waits;
  EXPECT_EQ(pool.rounded(1), 64);
  EXPECT_EQ(pool.rounded(256), 256);
  EXPECT_EQ(pool.rounded(257), 512);
  EXPECT_EQ(pool.allocate(257, End::Low, nothing_finished(), waits), 0);
  EXPECT_EQ(pool.allocate(1, End::Low, nothing_finished(), waits), 512);
  EXPECT_FALSE(pool.allocate(449, End::Low, nothing_finished(), waits)) << "of 448 free bytes";
  pool.free(0, 257, {}, nothing_finished());
  EXPECT_EQ(pool.free_bytes(), 1024 - 64);
}

TEST(Pool, CountsWhatIsKeptBesideItInThePeakAlone) {
  Pool pool(1024, 64, 100);
  Fence waits;
  EXPECT_EQ(pool.capacity_bytes(), 1024);
  EXPECT_EQ(pool.peak_bytes(), 100);
  ASSERT_TRUE(pool.allocate(1024, End::Low, nothing_finished(), waits));
  EXPECT_EQ(pool.free_bytes(), 0);
  EXPECT_EQ(pool.peak_bytes(), 1124);
}

TEST(Pool, PlacesFromBothEnds) {
  Pool pool(1024, 64);
  Fence waits;
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits), 0);
  EXPECT_EQ(pool.allocate(64, End::High, nothing_finished(), waits), 960);
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits), 64);
  EXPECT_EQ(pool.allocate(64, End::High, nothing_finished(), waits), 896);
}

TEST(Pool, HandsOutFreedBytesWithTheirFence) {
  Pool pool(128, 64);
  Fence waits, fence;
  ASSERT_TRUE(pool.allocate(128, End::Low, nothing_finished(), waits));
  fence.add({Engine::Compute, 7});
  pool.free(0, 64, fence, nothing_finished());
  fence.clear();
  fence.add({Engine::D2H, 9});
  pool.free(64, 64, fence, nothing_finished());
  ASSERT_EQ(pool.allocate(128, End::Low, nothing_finished(), waits), 0);  // adjoining segments serve one request
  ASSERT_EQ(waits.uses().size(), 2u);
}

TEST(Pool, ALaneNeedNotWaitForItself) {
  Pool pool(192, 64);
  Fence waits, busy;
  ASSERT_TRUE(pool.allocate(192, End::Low, nothing_finished(), waits));
  busy.add({Engine::Compute, 3});
  pool.free(0, 64, busy, nothing_finished());
  pool.free(128, 64, {}, nothing_finished());
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits, Engine::H2D), 128);
  pool.free(128, 64, {}, nothing_finished());
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits, Engine::Compute), 0);
}

TEST(Pool, PrefersBytesThatNothingStillUses) {
  Pool pool(192, 64);
  Fence waits, busy;
  ASSERT_TRUE(pool.allocate(192, End::Low, nothing_finished(), waits));
  busy.add({Engine::Compute, 3});
  pool.free(0, 64, busy, nothing_finished());
  pool.free(128, 64, {}, nothing_finished());
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits), 128);
  EXPECT_TRUE(waits.empty());
  LaneProgress progress = nothing_finished();
  progress[static_cast<std::size_t>(Engine::Compute)] = 3;
  EXPECT_EQ(pool.allocate(64, End::Low, progress, waits), 0);
  EXPECT_TRUE(waits.empty()) << "the fence is finished";
}

TEST(Pool, HiddenGapsAreNotHandedOut) {
  Pool pool(256, 64);
  Fence waits, busy;
  ASSERT_TRUE(pool.allocate(256, End::Low, nothing_finished(), waits));
  busy.add({Engine::D2H, 9});
  pool.free(0, 64, busy, nothing_finished());
  pool.free(128, 64, {}, nothing_finished());
  const auto hidden = pool.hide(0, 128);
  ASSERT_EQ(hidden.size(), 1u);
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits), 128);
  EXPECT_FALSE(pool.allocate(64, End::Low, nothing_finished(), waits));
  pool.show(hidden, nothing_finished());
  EXPECT_EQ(pool.allocate(64, End::Low, nothing_finished(), waits), 0);
  EXPECT_EQ(waits, busy) << "what uses it is remembered";
  EXPECT_EQ(pool.charged_bytes(), 256);
}

TEST(Pool, RandomTrafficNeverOverlapsAndLosesNothing) {
  std::mt19937 random(5);
  Pool pool(1 << 16, 64);
  std::map<std::int64_t, std::int64_t> live;  // offset to bytes
  LaneProgress progress = nothing_finished();
  CommandId next = 0;
  for (int turn = 0; turn < 50000; ++turn) {
    if (random() % 2 || live.empty()) {
      const std::int64_t bytes = 1 + random() % 3000;
      Fence waits;
      const auto offset = pool.allocate(bytes, random() % 2 ? End::Low : End::High, progress, waits);
      if (!offset) continue;
      const auto after = live.lower_bound(*offset);
      ASSERT_TRUE(after == live.end() || *offset + bytes <= after->first);
      ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= *offset);
      live[*offset] = bytes;
    } else {
      auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      Fence fence;
      fence.add({random() % 2 ? Engine::Compute : Engine::H2D, next++});
      pool.free(victim->first, victim->second, fence, progress);
      live.erase(victim);
    }
    if (random() % 10 == 0) progress.fill(next - 5);
  }
  for (const auto& [offset, bytes] : live) pool.free(offset, bytes, {}, progress);
  EXPECT_EQ(pool.charged_bytes(), 0);
  Fence waits;
  EXPECT_TRUE(pool.allocate(1 << 16, End::Low, progress, waits)) << "all bytes join again";
}

}  // namespace
}  // namespace tandem
