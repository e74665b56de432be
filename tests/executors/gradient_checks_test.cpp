// Sums of squares of gradients: the order that the header states, on every type and instruction set.
#include "runtime/optimizer/gradient_checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/formats/sums.hpp"
#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16};

double by_definition(Operand& gradient, std::int64_t elements) {
  double sum = 0;
  for (std::int64_t first = 0; first < elements; first += kNormBlock) {
    double lanes[8] = {}, block = 0;
    for (std::int64_t i = 0; i < std::min(kNormBlock, elements - first); ++i)
      lanes[i % 8] += static_cast<double>(gradient.value(first + i)) * gradient.value(first + i);
    for (const double lane : lanes) block += lane;
    sum += block;
  }
  return sum;
}

TEST(GradientChecksTest, TheSumIsTheDefinitionsOnEveryInstructionSet) {
  for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{8},
                                      std::int64_t{70}, kNormBlock, 2 * kNormBlock + 13})
    for (const DType type : kTypes)
      for (const std::int64_t misaligned : {0, 3}) {
        Operand gradient(plain_values(elements, 1, 7), type, misaligned);
        for (const Isa isa : isas()) {
          const GradientCheck check = check_gradient(gradient.data(), type, elements, isa);
          EXPECT_EQ(check.sum_of_squares, by_definition(gradient, elements));
          EXPECT_TRUE(check.finite);
        }
      }
}

TEST(GradientChecksTest, OneInfinityOrNaNAnywhereIsSeen) {
  constexpr std::int64_t kElements = 100;
  for (const DType type : kTypes)
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()})
      for (std::size_t at = 0; at < kElements; ++at) {
        std::vector<float> values = plain_values(kElements, 1, 7);
        values[at] = bad;
        Operand gradient(values, type, 0);
        for (const Isa isa : isas()) EXPECT_FALSE(check_gradient(gradient.data(), type, kElements, isa).finite);
      }
}

TEST(GradientChecksTest, TheLargestFiniteNumbersAreFinite) {
  const std::vector<float> values(1'000, std::numeric_limits<float>::max());
  EXPECT_TRUE(check_gradient(values.data(), DType::F32, 1'000).finite);
}

}  // namespace
}  // namespace tandem
