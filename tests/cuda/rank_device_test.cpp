// Which GPU a rank takes. Needs none.
#include "runtime/cuda/rank_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

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

std::pair<Rank, Rank> third_of_four(const std::map<std::string, const char*>& environment) {
  return on_this_host(2, 4, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second : nullptr;
  });
}

TEST(RankDevice, TorchrunSaysWhichOfAHostItIs) {
  const auto place = third_of_four({{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(place, std::pair(0, 2));
}

TEST(RankDevice, WhatATorchrunOfOneProcessSaysIsOfNoRank) {
  EXPECT_EQ(third_of_four({{"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}), std::pair(2, 4));
  EXPECT_EQ(third_of_four({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}), std::pair(2, 4));
  EXPECT_EQ(third_of_four({}), std::pair(2, 4));
}

}  // namespace
}  // namespace tandem
