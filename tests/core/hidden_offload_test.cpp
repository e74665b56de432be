// How many blocks' activations hide their way, by arithmetic.
#include "core/policies/common/hidden_offload.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

// Each forward takes 10 ns, each backward 20; nothing comes between.
std::vector<BlockTimes> stack(std::int64_t blocks, Way out, Way back) {
  std::vector<BlockTimes> times;
  for (std::int64_t i = 0; i < blocks; ++i)
    times.push_back(
        {.saved_ns = 10 * (i + 1), .wanted_ns = 10 * blocks + 20 * (blocks - 1 - i), .out = out, .back = back});
  return times;
}

// The last is wanted at once: no way is short enough. The one before has a backward's time.
TEST(HiddenOffload, AllButTheLastLeaveWhereCopiesAreAsFastAsComputing) {
  EXPECT_EQ(most_hidden(stack(8, {10, 0}, {20, 0}), 2), 7);
  EXPECT_EQ(most_hidden(stack(8, {0, 0}, {0, 0}), 2), 8);
  EXPECT_EQ(most_hidden({}, 2), 0);
}

// 8 blocks: forwards end at 80. With k blocks away, the last of them has left at 10 + 40 k, is wanted at 80 + 20 (8 -
// k) and takes 10 to return: 60 k <= 220.
TEST(HiddenOffload, ASlowWayOutTakesWhatItCanBeforeTheBackward) {
  EXPECT_EQ(most_hidden(stack(8, {40, 0}, {10, 0}), 2), 3);
  // What the last byte takes on the second lane counts once: 60 k <= 220 - 2 x 30.
  EXPECT_EQ(most_hidden(stack(8, {40, 30}, {10, 30}), 2), 2);
}

// 30 each where a backward takes 20: the first to return sets out 40 before it is wanted, with 10 to spare; each next
// one has 10 less. Three backwards ahead there are 30 to spare.
TEST(HiddenOffload, ASlowWayBackSetsOutEarlier) {
  const std::vector<BlockTimes> blocks = stack(8, {1, 0}, {30, 0});
  EXPECT_EQ(backwards_ahead(blocks, 1, 2), 2);
  EXPECT_EQ(backwards_ahead(blocks, 2, 2), 2);
  EXPECT_EQ(backwards_ahead(blocks, 3, 2), 3);
  EXPECT_EQ(backwards_ahead(blocks, 4, 2), 3);
  EXPECT_EQ(backwards_ahead(blocks, 5, 2), std::nullopt)
      << "150 from the end of the forwards on, and 140 until it is wanted";
  EXPECT_EQ(most_hidden(blocks, 2), 4);
}

}  // namespace
}  // namespace tandem
