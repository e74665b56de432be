// Initial parameters: the distribution that they claim, by a formula written out with the standard library's functions,
// and the same whoever fills which part.
#include "runtime/initial_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <numbers>
#include <vector>

namespace tandem {
namespace {

const std::vector<std::int64_t> kShape = {300, 700};
constexpr std::int64_t kElements = 300 * 700;

Field matrix() {
  Field field;
  field.shape.assign(std::begin(kShape), std::end(kShape));
  return field;
}

std::vector<float> filled(std::string_view name, std::uint64_t seed) {
  std::vector<float> out(kElements);
  fill_initial(out.data(), matrix(), name, seed);
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

TEST(InitialValues, AreAsAFieldSays) {
  Field field = matrix();
  std::vector<float> out(kElements);
  field.initial = {Initial::Kind::Constant, 2.5f};
  fill_initial(out.data(), field, "a.weight", 7);
  EXPECT_EQ(out, std::vector<float>(kElements, 2.5f));
  // Of another deviation, and else the same.
  field.initial = {Initial::Kind::Normal, 0.04f};
  fill_initial(out.data(), field, "a.weight", 7);
  const std::vector<float> usual = filled("a.weight", 7);
  for (std::size_t i = 0; i < out.size(); i += 997) EXPECT_NEAR(out[i], 2 * usual[i], 1e-6f);
  field.initial = {Initial::Kind::Sinusoids};
  fill_initial(out.data(), field, "a", 7);
  const std::size_t columns = 700, row = 3 * columns;
  EXPECT_FLOAT_EQ(out[row], std::sin(3.0f));
  EXPECT_FLOAT_EQ(out[row + columns / 2], std::cos(3.0f));
  EXPECT_FLOAT_EQ(out[row + columns / 2 - 1], std::sin(3.0f / 10000));
}

TEST(InitialValues, AreTheSameInAnyParts) {
  const std::vector<float> whole = filled("a.weight", 7);
  std::vector<float> parts(kElements);
  for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{1001, kElements}, {0, 13}, {13, 1001}})
    fill_initial(parts.data() + first, first, end - first, matrix(), "a.weight", 7);
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
