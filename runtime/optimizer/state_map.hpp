// What the codes of quantised optimizer states mean, and which code a number gets: the same on every processor. A block
// of numbers has one scale, the largest magnitude among them; a code stands for a level, a share of the scale. Must not
// know where blocks are (core/formats/state_blocks.hpp).
//
// | moment | bits | levels                                                                              |
// |--------|------|-------------------------------------------------------------------------------------|
// | m      | 8    | a sign, and 0 or one of 1, 2, 4, ... 64 levels of a segment; segments from 8^-7 to 1 |
// | v      | 8    | 8^-8, or one of 1, 2, 4, ... 128 levels of a segment; segments from 8^-8 to 1        |
// | m      | 4    | a sign, and 0 or one of 1, 2, 4 levels of a segment; segments from 8^-3 to 1         |
// | v      | 4    | 1/16, 2/16, ... 1                                                                   |
//
// The first three are the dynamic map of Dettmers et al. (ICLR 2022, arXiv 2110.02861, section 1.3): towards zero, each
// segment has half as many levels. Theirs are decades; these are eighths, so that levels are exact in fp32, and follow
// from a code by arithmetic, without a table. They end at the segment's end: a block's largest number comes back as it
// was. Those of v leave out zero, by which the update would be divided: Li et al. (NeurIPS 2023, arXiv 2309.01507,
// section 4.1) found that this decides at 4 bits, and use the linear map; at 8 bits it costs nothing.
#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

// The bits of an fp32 number without its sign: ordered as the magnitudes are, a NaN's above all.
TANDEM_ALWAYS_INLINE std::uint32_t magnitude_bits(float x) { return float_as_bits(x) & 0x7FFFFFFFU; }

// Segment k of `kBits`, 0 to kBits - 1, has 2^k levels in (8^k, 8^(k+1)] times 8^-kBits, of codes 2^k to 2^(k+1) - 1.
template <int kBits, bool kSigned>
struct DynamicMap {
  // Of codes up to 2^kBits - 1; those of negative numbers have one more bit, if kSigned.
  static TANDEM_ALWAYS_INLINE float level(std::int32_t code) {
    const auto c = static_cast<float>(kSigned ? code & (kNegative - 1) : code);
    const std::uint32_t power = float_as_bits(c) & kExponent;  // of 2^k, or 0
    const float p = bits_as_float(kSigned || power > kOne ? power : kOne);
    const float magnitude = (7 * c + 7 - 6 * p) * (p * p) * kLeast;  // exact
    return kSigned ? bits_as_float(float_as_bits(magnitude) | static_cast<std::uint32_t>(code / kNegative) << 31U)
                   : magnitude;
  }

  // The code of the level nearest to y, from -1 to 1; half-way points go to either. Where zero stands for the least
  // level, 8^-kBits, y goes to it that would be nearest to that.
  static TANDEM_ALWAYS_INLINE std::int32_t code(float y) {
    const std::uint32_t bits = magnitude_bits(y);
    constexpr std::int32_t kLowest = 124 - 3 * (kBits - 1);  // the least of the three exponents of segment 0
    const std::int32_t above = (static_cast<std::int32_t>(bits - 1) >> 23) - kLowest;
    const std::int32_t k = (above > 0 ? above : 0) * 11 >> 5;  // a third, up to 23
    const float p = bits_as_float(static_cast<std::uint32_t>(127 + k) << 23U);
    const float slope = bits_as_float(float_as_bits(1 / (7 * kLeast)) - (static_cast<std::uint32_t>(2 * k) << 23U));
    const float offset = rounded::subtract(rounded::multiply(6.0F / 7, p), 0.5F);
    const auto code = static_cast<std::int32_t>(rounded::add(rounded::multiply(bits_as_float(bits), slope), offset));
    return kSigned ? code | static_cast<std::int32_t>(float_as_bits(y) >> 31U) << kBits : code;
  }

 private:
  static constexpr std::int32_t kNegative = 1 << kBits;
  static constexpr std::uint32_t kExponent = 0x7F800000U, kOne = 0x3F800000U;
  static constexpr float kLeast = 1.0F / (1 << (3 * kBits));  // 8^-kBits
};

template <int kBits>
struct LinearMap {
  static TANDEM_ALWAYS_INLINE float level(std::int32_t code) { return static_cast<float>(code + 1) / (1 << kBits); }
  static TANDEM_ALWAYS_INLINE std::int32_t code(float y) {
    return static_cast<std::int32_t>(rounded::subtract(bits_as_float(magnitude_bits(y)) * (1 << kBits), 0.5F));
  }
};

template <int kBits>
struct StateMaps;
template <>
struct StateMaps<8> {
  using M = DynamicMap<7, true>;
  using V = DynamicMap<8, false>;
};
template <>
struct StateMaps<4> {
  using M = DynamicMap<3, true>;
  using V = LinearMap<4>;
};

// A block's scale, and what its numbers are multiplied by for their shares of it.
struct BlockScale {
  float scale, inverse;
};

// From the largest magnitude_bits() of a block. Numbers below the least normal one count as zeros. A block that holds
// an infinity or a NaN comes back as such numbers: every one of it is lost, as its parameters are.
TANDEM_ALWAYS_INLINE BlockScale block_scale(std::uint32_t largest) {
  constexpr std::uint32_t kLeastNormal = 0x00800000U, kInfinity = 0x7F800000U, kNaN = 0x7FC00000U;
  if (largest < kLeastNormal) return {0, 0};
  if (largest >= kInfinity) return {bits_as_float(largest == kInfinity ? kInfinity : kNaN), 0};
  const float scale = bits_as_float(largest);
  return {scale, rounded::divide(1.0F, scale)};
}

// The code of a number of a block.
template <class Map>
TANDEM_ALWAYS_INLINE std::int32_t code_of(float x, float inverse) {
  const float share = rounded::multiply(bits_as_float(magnitude_bits(x)), inverse);
  const float y = share < 1 ? share : 1;  // NaN, too, counts as 1; its sign differs by processor
  return Map::code(bits_as_float(float_as_bits(y) | (float_as_bits(x) & 0x80000000U)));
}

// What a number is after it has been stored.
template <class Map>
TANDEM_ALWAYS_INLINE float number_of(std::int32_t code, float scale) {
  return rounded::multiply(Map::level(code), scale);
}

}  // namespace tandem
