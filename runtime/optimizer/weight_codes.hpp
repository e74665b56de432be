// What the codes of compressed weights mean, and which code a number gets: the same on every processor. A block has one
// scale, the largest magnitude in it; a code stands for a level, a share of the scale, and the level 1 is one of them,
// as is 0: a block of equal weights comes back as it was. Must not know where blocks are
// (core/formats/weight_blocks.hpp).
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "core/base/host_device.hpp"
#include "core/formats/weight_blocks.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/state_map.hpp"

namespace tandem {

template <int kBits>
struct WeightMap;

// 255 levels, evenly spaced: a byte in two's complement.
template <>
struct WeightMap<8> {
  static TANDEM_ALWAYS_INLINE float level(std::int32_t code) {
    return rounded::multiply(static_cast<float>(static_cast<std::int8_t>(code)), 1.0F / kLargest);  // 127: exactly 1
  }
  static TANDEM_ALWAYS_INLINE std::int32_t code(float y) {
    const float magnitude = bits_as_float(magnitude_bits(y));
    const auto steps = static_cast<std::int32_t>(rounded::add(rounded::multiply(magnitude, kLargest), 0.5F));
    return (y < 0 ? -steps : steps) & 0xFF;
  }

 private:
  static constexpr float kLargest = 127;
};

// NF4: quantiles of the normal distribution, with 0 among them (Dettmers et al., NeurIPS 2023, arXiv 2305.14314,
// appendix E).
template <>
struct WeightMap<4> {
  static TANDEM_HOST_DEVICE inline float level(std::int32_t code) {
    constexpr float kLevels[16] = {-1.0F,
                                   -0.6961928009986877F,
                                   -0.5250730514526367F,
                                   -0.39491748809814453F,
                                   -0.28444138169288635F,
                                   -0.18477343022823334F,
                                   -0.09105003625154495F,
                                   0.0F,
                                   0.07958029955625534F,
                                   0.16093020141124725F,
                                   0.24611230194568634F,
                                   0.33791524171829224F,
                                   0.44070982933044434F,
                                   0.5626170039176941F,
                                   0.7229568362236023F,
                                   1.0F};
    return kLevels[code];
  }
  // The nearest level's; half-way points go to the lower.
  static TANDEM_HOST_DEVICE inline std::int32_t code(float y) {
    std::int32_t found = 0;
    for (std::int32_t i = 0; i + 1 < 16; ++i)
      found += y > rounded::multiply(0.5F, rounded::add(level(i), level(i + 1))) ? 1 : 0;
    return found;
  }
};

template <class Number>
TANDEM_ALWAYS_INLINE Number weight_as(float x);
template <>
TANDEM_ALWAYS_INLINE float weight_as<float>(float x) {
  return x;
}
template <>
TANDEM_ALWAYS_INLINE BFloat16 weight_as<BFloat16>(float x) {
  return split_master(x).parameter;  // as weights are rounded that are not compressed
}
template <>
TANDEM_ALWAYS_INLINE Float16 weight_as<Float16>(float x) {
  return to_float16(x);
}

// --- on the CPU: weight_codes.cpp ---

// Whole blocks.
struct WeightSpan {
  const std::byte* codes = nullptr;
  void* numbers = nullptr;
  DType type = DType::F32;  // of the numbers
  std::int64_t bits = 0, blocks = 0;
};
WeightSpan part_of(const WeightSpan& span, std::int64_t first_block, std::int64_t blocks);

// Codes become numbers: scale times level in fp32, rounded to the type.
void decode_weights(const WeightSpan& span);
// Codes of fp32 numbers, of as many whole blocks.
void encode_weights(const float* numbers, std::int64_t bits, std::int64_t blocks, std::byte* codes);

}  // namespace tandem
