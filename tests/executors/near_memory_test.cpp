// Near memory: far pages are exchanged for others, by clocks that know pages by a mark which fresh memory does not
// have.
#include "runtime/executors/near_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <thread>

#include "runtime/executors/arena.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kPage = NearMemory::kPageBytes, kPages = 6;
constexpr std::byte kFarMark{1}, kNearMark{2};
constexpr double kNearNs = 100, kFarNs = 190;

double by_mark(const std::byte* page) { return *page == kFarMark ? kFarNs : kNearNs; }

// Six whole pages, wherever the mapping begins. Those in `far` are marked so.
class NearMemoryTest : public ::testing::Test {
 protected:
  NearMemoryTest() : arena_("host", (kPages + 1) * kPage, false), team_(2) {
    std::byte* begin = arena_.at(0, arena_.size_bytes());
    first_ = begin + (kPage - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(begin) % kPage)) % kPage;
    EXPECT_EQ(populate(team_, first_, kPages * kPage), 0);
  }
  std::byte* page(std::int64_t i) const { return first_ + i * kPage; }
  void mark(const std::set<std::int64_t>& far) const {
    for (std::int64_t i = 0; i < kPages; ++i) *page(i) = far.contains(i) ? kFarMark : kNearMark;
  }
  Nearness bring_near(NearMemory& memory, std::int64_t spare_bytes) {
    return memory.bring_near(team_, first_, kPages * kPage, spare_bytes);
  }
  std::int64_t far_pages() const {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < kPages; ++i) count += *page(i) == kFarMark ? 1 : 0;
    return count;
  }
  Arena arena_;
  ThreadTeam team_;
  std::byte* first_ = nullptr;
};

TEST_F(NearMemoryTest, FarPagesAreExchangedAndNearOnesStay) {
  mark({1, 2, 4});
  NearMemory memory(by_mark);
  const Nearness nearness = bring_near(memory, kPages * kPage);
  EXPECT_EQ(nearness.bytes, kPages * kPage);
  EXPECT_EQ(nearness.far_before_bytes, 3 * kPage);
  EXPECT_EQ(nearness.far_bytes, 0);
  EXPECT_EQ(nearness.near_ns, kNearNs);
  for (const std::int64_t i : {0, 3, 5}) EXPECT_EQ(*page(i), kNearMark);
  for (const std::int64_t i : {1, 2, 4}) {
    EXPECT_TRUE(std::all_of(page(i), page(i) + kPage, [](std::byte b) { return b == std::byte{0}; })) << i;
    std::fill_n(page(i), kPage, std::byte{3});
  }
}

TEST_F(NearMemoryTest, NoMoreIsHeldBackThanThereIsToSpare) {
  mark({0, 1, 2, 3});
  NearMemory memory(by_mark);
  EXPECT_EQ(bring_near(memory, 3 * kPage).far_bytes, kPage);
  EXPECT_EQ(far_pages(), 1);
  EXPECT_EQ(bring_near(memory, 0).far_bytes, kPage);
  EXPECT_EQ(far_pages(), 1);
}

// Fresh memory may be far, too: it is exchanged again, as long as there is some to spare.
TEST_F(NearMemoryTest, ExchangesGoOnUntilAllIsNear) {
  mark({1, 5});
  NearMemory memory([](const std::byte* page) { return *page == kNearMark ? kNearNs : kFarNs; });
  const Nearness nearness = bring_near(memory, 7 * kPage);
  EXPECT_EQ(nearness.far_bytes, 2 * kPage);
  for (const std::int64_t i : {1, 5}) EXPECT_EQ(*page(i), std::byte{0});
}

// What one memory found near is the measure for all later ones: these may be far throughout.
TEST_F(NearMemoryTest, MemoryThatIsAllFarIsKnownByWhatWasNearBefore) {
  NearMemory memory(by_mark);
  mark({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(bring_near(memory, kPages * kPage).far_before_bytes, 0);
  mark({});
  bring_near(memory, kPages * kPage);
  mark({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(bring_near(memory, kPages * kPage).far_before_bytes, kPages * kPage);
}

// Threads on two sockets: each finds the other's pages far, and no page is far for all.
TEST_F(NearMemoryTest, APageThatIsNearForOneThreadIsNotFar) {
  mark({0, 1, 2});
  const auto home = std::this_thread::get_id();
  NearMemory memory([home](const std::byte* page) {
    return (*page == kFarMark) == (std::this_thread::get_id() == home) ? kFarNs : kNearNs;
  });
  EXPECT_EQ(bring_near(memory, kPages * kPage).far_before_bytes, 0);
  EXPECT_EQ(far_pages(), 3);
}

TEST_F(NearMemoryTest, ARangeWithoutAWholePageIsLeftAlone) {
  NearMemory memory([](const std::byte*) -> double { throw std::logic_error("no page to time"); });
  EXPECT_EQ(memory.bring_near(team_, first_ + 4096, kPage, kPage).bytes, 0);
}

TEST_F(NearMemoryTest, LoadsAreTimedAndLeaveThePageAsItIs) {
  mark({1});
  const double ns = load_ns(page(0));
  EXPECT_GE(ns, 0);
  EXPECT_EQ(*page(0), kNearMark);
  NearMemory memory;
  EXPECT_LE(bring_near(memory, 0).far_bytes, kPages * kPage);
}

TEST(PopulateTest, ARefusalIsItsErrno) {
  ThreadTeam team(2);
  const Arena arena("host", kPage, false);
  EXPECT_EQ(populate(team, arena.at(0, kPage), kPage), 0);
  EXPECT_EQ(populate(team, arena.at(0, kPage) + 1, kPage), 0);  // EINVAL: as from a kernel that knows no populating
  EXPECT_EQ(populate(team, nullptr, kPage), ENOMEM);            // nothing is mapped there
}

}  // namespace
}  // namespace tandem
