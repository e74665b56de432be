// Codes of compressed weights: numbers come back to within half a step between levels, a block's largest exactly, in
// every type, wherever blocks are cut.
#include "runtime/optimizer/weight_codes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kBlocks = 7;

std::vector<std::byte> encoded(const std::vector<float>& numbers, std::int64_t bits) {
  std::vector<std::byte> codes(static_cast<std::size_t>(coded_bytes(bits, static_cast<std::int64_t>(numbers.size()))));
  encode_weights(numbers.data(), bits, static_cast<std::int64_t>(numbers.size()) / weight_block(bits).elements,
                 codes.data());
  return codes;
}

template <class Number>
std::vector<Number> decoded(const std::vector<std::byte>& codes, std::int64_t bits, DType type) {
  const StateBlock block = weight_block(bits);
  const std::int64_t blocks = static_cast<std::int64_t>(codes.size()) / block.bytes;
  std::vector<Number> numbers(static_cast<std::size_t>(blocks * block.elements));
  decode_weights({codes.data(), numbers.data(), type, bits, blocks});
  return numbers;
}

class WeightCodes : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(WeightCodes, AreWithinHalfAStepOfTheNumber) {
  const std::int64_t bits = GetParam(), size = weight_block(bits).elements;
  const std::vector<float> numbers = plain_values(kBlocks * size, 0.02F, 3);
  const std::vector<float> back = decoded<float>(encoded(numbers, bits), bits, DType::F32);
  // The widest step between neighbours, as a share of the largest magnitude: 2/254; NF4's first two levels.
  const double step = bits == 8 ? 1.0 / 127 : 1 - 0.6961928;
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    const auto begin = numbers.begin() + b * size;
    const float largest =
        *std::max_element(begin, begin + size, [](float x, float y) { return std::fabs(x) < std::fabs(y); });
    for (std::int64_t i = b * size; i < (b + 1) * size; ++i) {
      const float x = numbers[static_cast<std::size_t>(i)], y = back[static_cast<std::size_t>(i)];
      EXPECT_LE(std::fabs(y - x), step / 2 * std::fabs(largest) * 1.0001) << i;
      if (std::fabs(x) == std::fabs(largest)) {
        EXPECT_EQ(x, y) << i;
      }
    }
  }
}

TEST_P(WeightCodes, GiveLevelsBackAsTheyAre) {
  const std::int64_t bits = GetParam();
  const std::vector<float> once =
      decoded<float>(encoded(plain_values(kBlocks * weight_block(bits).elements, 1, 5), bits), bits, DType::F32);
  EXPECT_EQ(decoded<float>(encoded(once, bits), bits, DType::F32), once);
}

TEST_P(WeightCodes, KeepBlocksOfOneNumberAndZeros) {
  const std::int64_t bits = GetParam();
  std::vector<float> numbers(static_cast<std::size_t>(2 * weight_block(bits).elements), 0.3F);
  std::fill_n(numbers.begin(), weight_block(bits).elements, 0.0F);
  const std::vector<float> back = decoded<float>(encoded(numbers, bits), bits, DType::F32);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(numbers[i])) << i;
}

TEST_P(WeightCodes, AreRoundedToTheComputingType) {
  const std::int64_t bits = GetParam();
  const std::vector<std::byte> codes = encoded(plain_values(kBlocks * weight_block(bits).elements, 0.02F, 9), bits);
  const std::vector<float> wide = decoded<float>(codes, bits, DType::F32);
  const std::vector<BFloat16> brain = decoded<BFloat16>(codes, bits, DType::BF16);
  const std::vector<Float16> half = decoded<Float16>(codes, bits, DType::F16);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(brain[i].bits, split_master(wide[i]).parameter.bits) << i;
    EXPECT_EQ(half[i].bits, to_float16(wide[i]).bits) << i;
  }
}

TEST_P(WeightCodes, MayBeCutAtBlocks) {
  const std::int64_t bits = GetParam(), size = weight_block(bits).elements;
  const std::vector<std::byte> codes = encoded(plain_values(kBlocks * size, 0.02F, 4), bits);
  std::vector<float> whole = decoded<float>(codes, bits, DType::F32), parts(whole.size());
  const WeightSpan span{codes.data(), parts.data(), DType::F32, bits, kBlocks};
  decode_weights(part_of(span, 0, 2));
  decode_weights(part_of(span, 2, kBlocks - 2));
  EXPECT_EQ(parts, whole);
}

// Of a number that is none, its whole block is lost, and seen to be; its neighbours are not.
TEST_P(WeightCodes, ShowWhatIsNotFinite) {
  const std::int64_t bits = GetParam(), size = weight_block(bits).elements;
  std::vector<float> numbers = plain_values(2 * size, 0.02F, 4);
  numbers[3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> back = decoded<float>(encoded(numbers, bits), bits, DType::F32);
  EXPECT_TRUE(std::isnan(back[3]));
  for (std::int64_t i = size; i < 2 * size; ++i) EXPECT_TRUE(std::isfinite(back[static_cast<std::size_t>(i)])) << i;
}

INSTANTIATE_TEST_SUITE_P(Bits, WeightCodes, ::testing::Values(8, 4));

}  // namespace
}  // namespace tandem
