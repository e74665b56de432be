// Made-up batches: the numbers that they claim, and the same ones however a step is cut into micro-batches.
#include "runtime/made_up_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem {
namespace {

constexpr std::int64_t kOfSample = 5000, kSamples = 6;

std::vector<float> numbers(BatchKey key, std::int64_t samples, std::int64_t tensor = 0) {
  std::vector<float> out(static_cast<std::size_t>(samples * kOfSample));
  make_up({{/*seed=*/3}, key, samples, tensor, samples * kOfSample}, out.data());
  return out;
}

TEST(MadeUpData, IsNormal) {
  const std::vector<float> x = numbers({}, kSamples);
  double sum = 0, squares = 0;
  for (const float number : x) sum += number, squares += double{number} * number;
  const auto count = static_cast<double>(x.size());
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2 / count));
}

TEST(MadeUpData, IntegersAreAllAsLikely) {
  constexpr std::int64_t kBelow = 7;
  std::vector<std::int64_t> out(static_cast<std::size_t>(kSamples * kOfSample));
  make_up({{/*seed=*/3}, {}, kSamples, 1, kSamples * kOfSample}, kBelow, out.data());
  const double expected = static_cast<double>(out.size()) / kBelow;
  for (std::int64_t number = 0; number < kBelow; ++number)
    EXPECT_NEAR(static_cast<double>(std::count(out.begin(), out.end(), number)), expected, 5 * std::sqrt(expected));
}

TEST(MadeUpData, IsTheSameHoweverAStepIsCut) {
  const std::vector<float> whole = numbers({}, kSamples);
  std::vector<float> parts;
  for (std::int32_t micro_batch = 0; micro_batch < 3; ++micro_batch) {
    const std::vector<float> part = numbers({.micro_batch = micro_batch}, kSamples / 3);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts, whole);
}

// Five items of three samples, or a count: they differ by micro-batch, and none is left out.
TEST(MadeUpData, ItemsThatAreNoMultipleAreMadeTogether) {
  const auto items = [](std::int32_t micro_batch) {
    std::vector<float> out(5, -1000);
    make_up({{/*seed=*/3}, {.micro_batch = micro_batch}, 3, 0, 5}, out.data());
    return out;
  };
  EXPECT_EQ(items(1), items(1));
  EXPECT_NE(items(0), items(1));
  for (const float number : items(0)) EXPECT_GT(number, -10);
}

TEST(MadeUpData, DependsOnStepTensorAndWhatItIsFor) {
  const std::vector<float> x = numbers({}, kSamples);
  EXPECT_NE(numbers({.step = 1}, kSamples), x);
  EXPECT_NE(numbers({.held_out = true}, kSamples), x);
  EXPECT_NE(numbers({}, kSamples, /*tensor=*/1), x);
  EXPECT_EQ(numbers({}, kSamples), x);
}

}  // namespace
}  // namespace tandem
