// Conversions between fp32 and 16 bits: all values there and back, ties, and the ends of the range.
#include "runtime/optimizer/low_precision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(LowPrecisionTest, Every16BitNumberComesBack) {
  for (std::uint32_t i = 0; i < 0x10000U; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float bf16 = to_float(BFloat16{bits}), fp16 = to_float(Float16{bits});
    EXPECT_EQ(to_bfloat16(bf16).bits, std::isnan(bf16) ? kBFloat16NaN : bits);
    EXPECT_EQ(to_float16(fp16).bits, std::isnan(fp16) ? kFloat16NaN : bits);
  }
}

TEST(LowPrecisionTest, TiesGoToEvenAndTheirNeighboursToTheNearest) {
  EXPECT_EQ(to_bfloat16(0x1.01p0F).bits, 0x3F80);      // half-way from 1 to the next: 1 is even
  EXPECT_EQ(to_bfloat16(0x1.03p0F).bits, 0x3F82);      // half-way from an odd one: up
  EXPECT_EQ(to_bfloat16(0x1.010002p0F).bits, 0x3F81);  // just above half-way
  EXPECT_EQ(to_float16(0x1.002p0F).bits, 0x3C00);
  EXPECT_EQ(to_float16(0x1.006p0F).bits, 0x3C02);
  EXPECT_EQ(to_float16(0x1.002002p0F).bits, 0x3C01);
  EXPECT_EQ(to_float16(0x1p-25F).bits, 0);  // half of the least subnormal
  EXPECT_EQ(to_float16(0x1.000002p-25F).bits, 1);
  EXPECT_EQ(to_float16(0x1.8p-24F).bits, 2);  // half-way from 1 to 2 steps
}

TEST(LowPrecisionTest, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(to_float16(65519.99F).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(to_float16(-1e20F).bits, 0xFC00);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(to_float(to_float16(-kInfinity)), -kInfinity);
  EXPECT_EQ(to_float(to_bfloat16(kInfinity)), kInfinity);
}

// All upper halves, each with lower halves at and around a tie, at both ends, and between.
template <class Check>
void for_masters(Check&& check) {
  std::mt19937 random(1);
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFEU, 0xFFFFU})
      check(bits_as_float(upper << 16U | lower));
    for (int i = 0; i < 16; ++i) check(bits_as_float(upper << 16U | (static_cast<std::uint32_t>(random()) & 0xFFFFU)));
  }
}

TEST(LowPrecisionTest, SplitMastersComeBackToTheBit) {
  for_masters([](float x) {
    const SplitMaster halves = split_master(x);
    const std::uint32_t back = float_as_bits(join_master(halves));
    ASSERT_EQ(back, std::isnan(x) ? std::uint32_t{kBFloat16NaN} << 16U : float_as_bits(x));
    if (!std::isnan(x)) return;
    ASSERT_EQ(halves.parameter.bits, kBFloat16NaN);
    ASSERT_EQ(halves.low, 0);
  });
}

// The other way round: no two pairs of halves are one master.
TEST(LowPrecisionTest, JoinedHalvesComeBack) {
  for (std::uint32_t upper = 0; upper < 0x10000U; upper += 3)
    for (const int low : {-0x8000, -0x7FFF, -1, 0, 1, 0x7FFE, 0x7FFF}) {
      const SplitMaster halves{{static_cast<std::uint16_t>(upper)}, static_cast<std::int16_t>(low)};
      const float master = join_master(halves);
      if (std::isnan(master)) continue;
      ASSERT_EQ(split_master(master).parameter.bits, halves.parameter.bits) << master;
      ASSERT_EQ(split_master(master).low, halves.low) << master;
    }
}

// LibTorch's rounding but for ties, which go to the larger magnitude.
TEST(LowPrecisionTest, ASplitMastersParameterIsTheNearest) {
  for_masters([](float x) {
    const std::uint16_t parameter = split_master(x).parameter.bits, even = to_bfloat16(x).bits;
    const bool tie = (float_as_bits(x) & 0xFFFFU) == 0x8000U && !std::isnan(x);
    ASSERT_EQ(parameter, tie ? (float_as_bits(x) >> 16U) + 1 : even) << x;
  });
}

TEST(LowPrecisionTest, TheLargestMasterComesBackFromAnInfiniteParameter) {
  const SplitMaster halves = split_master(std::numeric_limits<float>::max());
  EXPECT_EQ(to_float(halves.parameter), kInfinity);
  EXPECT_EQ(halves.low, -1);
  EXPECT_EQ(join_master(halves), std::numeric_limits<float>::max());
  EXPECT_EQ(split_master(-kInfinity).parameter.bits, 0xFF80);
  EXPECT_EQ(split_master(-kInfinity).low, 0);
}

// A step that moves nothing: v is 0, epsilon 1 and the step size 0, so that the parameter is the master, rounded.
TEST(LowPrecisionTest, EveryInstructionSetRoundsAlike) {
  const UpdateOptions options{0, 0.9, 0.999, 1, 0, false};
  for (const DType type : {DType::BF16, DType::F16})
    for (const Isa isa : isas()) {
      AdamCase c(1 << 16, true, type, type, 0);
      for (std::int64_t i = 0; i < c.elements; ++i) c.m.floats()[i] = c.v.floats()[i] = 0;
      std::memset(c.gradient.data(), 0, static_cast<std::size_t>(c.elements) * 2);
      AdamCase before = c;
      update_elements(update_step(options, 1), c.span(), isa);
      for (std::int64_t i = 0; i < c.elements; ++i) {
        const float x = before.master.floats()[i];
        const std::uint16_t expected = type == DType::BF16 ? split_master(x).parameter.bits : to_float16(x).bits;
        std::uint16_t got = 0;
        std::memcpy(&got, c.parameter.data() + i * 2, sizeof(got));
        ASSERT_EQ(got, expected) << x;
        if (type == DType::BF16) {
          ASSERT_EQ(c.master_low.int16s()[i], split_master(x).low) << x;
        }
      }
    }
}

}  // namespace
}  // namespace tandem
