// Which GPU a rank takes. Needs none.
#include "runtime/cuda/rank_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

TEST(RankDevice, EachRankHasItsOwnFirst) {
  EXPECT_EQ(visible_devices("", 0, 3), "0,1,2");
  EXPECT_EQ(visible_devices("", 1, 3), "1,2,0");
  EXPECT_EQ(visible_devices("", 2, 3), "2,0,1");
}

TEST(RankDevice, ThoseThatTheUserNamesAreTaken) {
  EXPECT_EQ(visible_devices("4,6,7", 0, 2), "4,6");
  EXPECT_EQ(visible_devices("4,6,7", 1, 2), "6,4");
}

TEST(RankDevice, FewerThanRanksAreRefused) {
  try {
    visible_devices("5", 0, 2);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("names 1 of the 2 GPUs"));
  }
}

}  // namespace
}  // namespace tandem
