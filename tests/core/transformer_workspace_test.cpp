// What a transformer's bodies may take on a GPU beyond their own temporaries, by arithmetic.
#include <gtest/gtest.h>

#include "core/workloads/common/transformer.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::int64_t temporaries(std::int64_t batch, std::int64_t sequence, std::int64_t hidden, std::int64_t heads) {
  TransformerSizes s;
  s.batch = batch, s.sequence = sequence, s.hidden = hidden, s.heads = heads;
  s.gpu = true;
  return library_temporaries(s) - 2 * s.logsumexp();
}

// 8 x 16 sequences and heads fill a GPU.
TEST(TransformerWorkspace, ManyHeadsNeedTwoPartsOfTheQuerysGradient) {
  EXPECT_EQ(temporaries(8, 1024, 2048, 16), 64 * kMiB + 2 * (8 * 1024 * 2048 * 4));
}

// 13 heads of one sequence do not: ATen asked for 11 parts on 132 multiprocessors; 148 make 12.
TEST(TransformerWorkspace, FewHeadsNeedMoreParts) {
  EXPECT_EQ(temporaries(1, 4096, 1664, 13), 32 * kMiB + std::int64_t{12} * (4096 * 1664 * 4));
}

// The sum of 2,048 rows of 10,752: ATen asked for 143,130,624 bytes, 26 groups of 4 rows of 32 threads for each 128
// columns, which fill 132 multiprocessors; 148 make 29.
TEST(TransformerWorkspace, FewRowsLeaveTheSumOfABiassGradientTheLargest) {
  EXPECT_EQ(std::int64_t{26} * 10752 * 128 * 4, 143'130'624);
  EXPECT_EQ(temporaries(4, 512, 2688, 21), 32 * kMiB + std::int64_t{29} * 10752 * 128 * 4);
}

// 4,096 rows of 4,096: 64 groups, for each has at least 16 numbers a thread; it asked for 134,217,728 bytes.
TEST(TransformerWorkspace, GroupsHaveSomethingToSum) {
  EXPECT_EQ(temporaries(8, 512, 1024, 16), 32 * kMiB + 134'217'728);
}

}  // namespace
}  // namespace tandem
