// bf16 and fp16 as bits, and their conversions from and to fp32 by integer operations alone, so that every compiler,
// host and device gives the same bits. Rounds to nearest, ties to even; every NaN becomes one quiet NaN. And fp32
// master parameters as two halves, of which the upper is the bf16 parameter.
#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"

namespace tandem {

struct BFloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

inline constexpr std::uint16_t kBFloat16NaN = 0x7FC0, kFloat16NaN = 0x7E00;

// The builtin, as nvcc takes std::bit_cast for the host's alone.
TANDEM_ALWAYS_INLINE float bits_as_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
TANDEM_ALWAYS_INLINE std::uint32_t float_as_bits(float x) { return __builtin_bit_cast(std::uint32_t, x); }

TANDEM_HOST_DEVICE inline float to_float(float x) { return x; }

TANDEM_HOST_DEVICE inline float to_float(BFloat16 x) {
  return bits_as_float(static_cast<std::uint32_t>(x.bits) << 16U);
}

// The exponent is rebased by a product with a power of two, which is exact and makes subnormals normal.
TANDEM_HOST_DEVICE inline float to_float(Float16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16U, magnitude = x.bits & 0x7FFFU;
  if (magnitude >= 0x7C00U) return bits_as_float(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13U);
  constexpr float kRebase = 0x1p+112F;  // from fp16's bias, 15, to fp32's, 127
  const float value = bits_as_float(magnitude << 13U) * kRebase;
  return bits_as_float(sign | float_as_bits(value));
}

TANDEM_HOST_DEVICE inline BFloat16 to_bfloat16(float x) {
  const std::uint32_t bits = float_as_bits(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {kBFloat16NaN};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U)};
}

// A master parameter in two halves. The parameter is the master rounded to nearest, ties away from zero; `low` is the
// master's bits less the parameter's, which 16 signed bits hold however the parameter was rounded.
struct SplitMaster {
  BFloat16 parameter;
  std::int16_t low;
};

// The master's bits, exactly, for whatever split_master() gives: joining undoes splitting, and the other way round, but
// that all NaNs become one (low: 0). Where the parameter has been rounded to an infinity, a finite master comes back.
TANDEM_HOST_DEVICE inline float join_master(SplitMaster halves) {
  const std::uint32_t upper = static_cast<std::uint32_t>(halves.parameter.bits) << 16U;
  return bits_as_float(upper + static_cast<std::uint32_t>(static_cast<std::int32_t>(halves.low)));
}

// Ties go away from zero, not to even: then the master's lower 16 bits, taken as a signed number, are `low`.
TANDEM_HOST_DEVICE inline SplitMaster split_master(float master) {
  const std::uint32_t bits = float_as_bits(master);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {{kBFloat16NaN}, 0};
  return {{static_cast<std::uint16_t>((bits + 0x8000U) >> 16U)}, static_cast<std::int16_t>(bits & 0xFFFFU)};
}

TANDEM_HOST_DEVICE inline Float16 to_float16(float x) {
  const std::uint32_t bits = float_as_bits(x), magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  if (magnitude > 0x7F800000U) return {kFloat16NaN};
  constexpr std::uint32_t kOverflow = 0x477FF000U;  // 65520: half-way from the largest fp16 to the next power of two
  if (magnitude >= kOverflow) return {static_cast<std::uint16_t>(sign | 0x7C00U)};
  constexpr std::uint32_t kLeastNormal = 0x38800000U;  // 2^-14
  if (magnitude >= kLeastNormal) {
    const std::uint32_t rebased = magnitude - (112U << 23U);
    return {static_cast<std::uint16_t>(sign | (rebased + 0xFFFU + (rebased >> 13U & 1U)) >> 13U)};
  }
  // Subnormal: 2^-1 has an ulp of 2^-24, fp16's least step, so that this sum rounds the value to whole steps.
  const float steps = bits_as_float(magnitude) + 0.5F;
  return {static_cast<std::uint16_t>(sign | (float_as_bits(steps) - 0x3F000000U))};
}

}  // namespace tandem
