// Conversions between fp32 and 16 bits: all values there and back, ties, and the ends of the range.
#include "runtime/optimizer/low_precision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

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

// A step that moves nothing: v is 0, epsilon 1 and the step size 0, so that the parameter is the master, rounded.
TEST(LowPrecisionTest, EveryInstructionSetRoundsAlike) {
  const AdamOptions options{0, 0.9, 0.999, 1, 0, false};
  for (const DType type : {DType::BF16, DType::F16})
    for (const Isa isa : isas()) {
      AdamCase c(1 << 16, true, type, type, 0);
      for (std::int64_t i = 0; i < c.elements; ++i) c.m.floats()[i] = c.v.floats()[i] = 0;
      std::memset(c.gradient.data(), 0, static_cast<std::size_t>(c.elements) * 2);
      AdamCase before = c;
      adam_update(adam_step(options, 1), c.span(), isa);
      for (std::int64_t i = 0; i < c.elements; ++i) {
        const float x = before.master.floats()[i];
        const std::uint16_t expected = type == DType::BF16 ? to_bfloat16(x).bits : to_float16(x).bits;
        std::uint16_t got = 0;
        std::memcpy(&got, c.parameter.data() + i * 2, sizeof(got));
        ASSERT_EQ(got, expected) << x;
      }
    }
}

}  // namespace
}  // namespace tandem
