// The codes of quantised states: exact levels, the nearest of them, and blocks of extreme numbers.
#include "runtime/optimizer/state_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace tandem {
namespace {

template <class Map>
std::vector<float> levels(int codes) {
  std::vector<float> all;
  for (int code = 0; code < codes; ++code) all.push_back(Map::level(code));
  return all;
}

// Each code but those of zeros is that of its level. Levels lie between -1 and 1 and differ.
template <class Map>
void expect_codes_of_levels(int codes) {
  const std::vector<float> all = levels<Map>(codes);
  for (int code = 0; code < codes; ++code) {
    const float level = all[static_cast<std::size_t>(code)];
    EXPECT_EQ(Map::code(level), code) << level;
    EXPECT_LE(std::abs(level), 1);
  }
  const std::size_t zeros = static_cast<std::size_t>(std::count(all.begin(), all.end(), 0.0F));
  EXPECT_EQ(std::set<float>(all.begin(), all.end()).size(), all.size() - (zeros > 1 ? zeros - 1 : 0));
}

TEST(StateMapTest, EveryCodeIsThatOfItsLevel) {
  expect_codes_of_levels<StateMaps<8>::M>(256);
  expect_codes_of_levels<StateMaps<8>::V>(256);
  expect_codes_of_levels<StateMaps<4>::M>(16);
  expect_codes_of_levels<StateMaps<4>::V>(16);
}

TEST(StateMapTest, LevelsAreThoseOfTheTable) {
  const std::vector<float> m = {0, 0x1p-6F, 9.0F / 128, 0.125F, 11.0F / 32, 18.0F / 32, 25.0F / 32, 1};
  for (int code = 0; code < 8; ++code) {
    EXPECT_EQ(StateMaps<4>::M::level(code), m[static_cast<std::size_t>(code)]);
    EXPECT_EQ(StateMaps<4>::M::level(code + 8), -m[static_cast<std::size_t>(code)]);
  }
  for (int code = 0; code < 16; ++code) EXPECT_EQ(StateMaps<4>::V::level(code), static_cast<float>(code + 1) / 16);
  EXPECT_EQ(StateMaps<8>::M::level(0), 0);
  EXPECT_EQ(StateMaps<8>::M::level(1), 0x1p-18F);
  EXPECT_EQ(StateMaps<8>::V::level(0), 0x1p-24F);
  for (const float least : {StateMaps<8>::V::level(0), StateMaps<4>::V::level(0)}) EXPECT_GT(least, 0);
  EXPECT_EQ(StateMaps<8>::M::level(127), 1);
  EXPECT_EQ(StateMaps<8>::V::level(255), 1);
}

// By search among all levels. Half-way points may go to either, so numbers next to them are a rounding error off.
template <class Map>
void expect_nearest(std::vector<float> levels, bool is_signed) {
  if (levels[0] == 0) levels[0] = levels[1] / 8;  // what zero stands for
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-30, 0);
  for (int i = 0; i < 100'000; ++i) {
    const float y = std::exp2(exponent(random));
    float least = 2;
    for (const float level : levels) least = std::min(least, std::abs(level - y));
    const int code = Map::code(y);
    ASSERT_LE(std::abs(levels[static_cast<std::size_t>(code)] - y), least + 1e-6F * y) << y;
    if (is_signed) {
      ASSERT_EQ(Map::code(-y), code + static_cast<int>(levels.size())) << y;
    }
  }
}

TEST(StateMapTest, ANumberGetsTheNearestLevel) {
  expect_nearest<StateMaps<8>::M>(levels<StateMaps<8>::M>(128), true);
  expect_nearest<StateMaps<8>::V>(levels<StateMaps<8>::V>(256), false);
  expect_nearest<StateMaps<4>::M>(levels<StateMaps<4>::M>(8), true);
  expect_nearest<StateMaps<4>::V>(levels<StateMaps<4>::V>(16), false);
}

template <class Map>
float stored(float x, float largest) {
  const BlockScale scale = block_scale(magnitude_bits(largest));
  return number_of<Map>(code_of<Map>(x, scale.inverse), scale.scale);
}

TEST(StateMapTest, TheLargestOfABlockComesBackAsItWas) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-126, 127);
  for (int i = 0; i < 10'000; ++i) {
    const float x = std::exp2(exponent(random));
    EXPECT_EQ(stored<StateMaps<8>::M>(-x, x), -x);
    EXPECT_EQ(stored<StateMaps<8>::V>(x, x), x);
    EXPECT_EQ(stored<StateMaps<4>::M>(x, -x), x);
    EXPECT_EQ(stored<StateMaps<4>::V>(x, x), x);
  }
}

TEST(StateMapTest, ExtremeBlocks) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(stored<StateMaps<8>::V>(0, 0), 0);
  EXPECT_EQ(stored<StateMaps<8>::V>(Limits::denorm_min(), Limits::min() / 2), 0);
  EXPECT_EQ(stored<StateMaps<8>::M>(Limits::min(), Limits::min()), Limits::min());
  EXPECT_EQ(stored<StateMaps<8>::M>(Limits::max(), Limits::max()), Limits::max());
  EXPECT_EQ(stored<StateMaps<8>::M>(-Limits::infinity(), Limits::infinity()), -Limits::infinity());
  EXPECT_TRUE(std::isnan(stored<StateMaps<8>::M>(0, Limits::infinity())));
  for (const float x : {0.0F, 1.0F, Limits::quiet_NaN(), Limits::infinity()})
    EXPECT_TRUE(std::isnan(stored<StateMaps<4>::M>(x, Limits::quiet_NaN()))) << x;
}

}  // namespace
}  // namespace tandem
