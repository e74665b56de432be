// Initial parameters: the distribution that they claim, by a formula written out with the standard library's functions,
// and the same whoever fills which part.
#include "runtime/initial_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace tandem {
namespace {

const std::vector<std::int64_t> kShape = {300, 700};
constexpr std::int64_t kElements = 300 * 700;

std::vector<float> filled(std::string_view name, std::uint64_t seed) {
  std::vector<float> out(kElements);
  fill_initial(out.data(), kShape, name, seed);
  return out;
}

TEST(InitialValues, AreNormalWithTheDeviationOfGpt2) {
  std::vector<float> values = filled("block0.mlp.weight", 7);
  double sum = 0, squares = 0, beyond = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    beyond += std::abs(value) > 2 * 0.02;
  }
  // Four standard errors of each figure.
  EXPECT_NEAR(sum / kElements, 0, 4 * 0.02 / std::sqrt(kElements));
  EXPECT_NEAR(std::sqrt(squares / kElements), 0.02, 4 * 0.02 / std::sqrt(2.0 * kElements));
  EXPECT_NEAR(beyond / kElements, std::erfc(std::numbers::sqrt2), 4 * std::sqrt(0.0455 / kElements));
}

TEST(InitialValues, DependOnSeedAndName) {
  EXPECT_NE(filled("a.weight", 7), filled("a.weight", 8));
  EXPECT_NE(filled("a.weight", 7), filled("b.weight", 7));
}

TEST(InitialValues, AreTheSameInAnyParts) {
  const std::vector<float> whole = filled("a.weight", 7);
  std::vector<float> parts(kElements);
  for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{1001, kElements}, {0, 13}, {13, 1001}})
    fill_initial(parts.data() + first, first, end - first, kShape, "a.weight", 7);
  EXPECT_EQ(parts, whole);
}

// Recorded once: a run is to begin with the same parameters on every machine and after every change of the code.
TEST(InitialValues, StayAsTheyAre) {
  const std::vector<float> values = filled("block0.mlp.weight", 7);
  const std::vector<float> first(values.begin(), values.begin() + 4);
  EXPECT_EQ(first, (std::vector<float>{0x1.4ce06ep-5f, 0x1.3fe076p-6f, -0x1.3d1804p-9f, 0x1.19f36p-7f}));
}

}  // namespace
}  // namespace tandem
