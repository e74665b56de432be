#include "runtime/optimizer/weight_codes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.hpp"

namespace tandem {
namespace {

float scale_of(const std::byte* block) {
  float scale = 0;
  std::memcpy(&scale, block, sizeof scale);
  return scale;
}

const std::uint8_t* codes_of(const std::byte* block) {
  return reinterpret_cast<const std::uint8_t*>(block + kScaleBytes);
}

template <class Number>
void decode_block_8(const std::byte* block, Number* out) {
  const float scale = scale_of(block);
  const std::uint8_t* codes = codes_of(block);
  for (std::int64_t i = 0; i < weight_block(8).elements; ++i)
    out[i] = weight_as<Number>(number_of<WeightMap<8>>(codes[i], scale));
}

// The block's 16 numbers, then each code's.
template <class Number>
void decode_block_4(const std::byte* block, Number* out) {
  const float scale = scale_of(block);
  const std::uint8_t* codes = codes_of(block);
  std::array<Number, 16> numbers{};
  for (std::int32_t code = 0; code < 16; ++code)
    numbers[static_cast<std::size_t>(code)] = weight_as<Number>(number_of<WeightMap<4>>(code, scale));
  for (std::int64_t i = 0; i < weight_block(4).elements / 2; ++i) {
    out[2 * i] = numbers[codes[i] & 15U];
    out[2 * i + 1] = numbers[codes[i] >> 4U];
  }
}

template <class Number>
void decode_as(const WeightSpan& span) {
  const StateBlock block = weight_block(span.bits);
  auto* out = static_cast<Number*>(span.numbers);
  for (std::int64_t b = 0; b < span.blocks; ++b) {
    if (span.bits == 8)
      decode_block_8(span.codes + b * block.bytes, out + b * block.elements);
    else
      decode_block_4(span.codes + b * block.bytes, out + b * block.elements);
  }
}

template <int kBits>
void encode_block(const float* numbers, std::byte* block) {
  constexpr std::int64_t kElements = weight_block(kBits).elements;
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < kElements; ++i) largest = std::max(largest, magnitude_bits(numbers[i]));
  const BlockScale scale = block_scale(largest);
  std::memcpy(block, &scale.scale, sizeof scale.scale);
  auto* codes = reinterpret_cast<std::uint8_t*>(block + kScaleBytes);
  const auto code = [&](std::int64_t i) {
    return static_cast<std::uint8_t>(code_of<WeightMap<kBits>>(numbers[i], scale.inverse));
  };
  if constexpr (kBits == 8)
    for (std::int64_t i = 0; i < kElements; ++i) codes[i] = code(i);
  else
    for (std::int64_t i = 0; i < kElements / 2; ++i)
      codes[i] = static_cast<std::uint8_t>(code(2 * i) | code(2 * i + 1) << 4U);
}

}  // namespace

WeightSpan part_of(const WeightSpan& span, std::int64_t first_block, std::int64_t blocks) {
  CHECK(first_block >= 0 && blocks >= 0 && first_block + blocks <= span.blocks, first_block, blocks, span.blocks);
  const StateBlock block = weight_block(span.bits);
  return {span.codes + first_block * block.bytes,
          static_cast<std::byte*>(span.numbers) + first_block * block.elements * size_of(span.type), span.type,
          span.bits, blocks};
}

void decode_weights(const WeightSpan& span) {
  if (span.type == DType::F32) return decode_as<float>(span);
  if (span.type == DType::BF16) return decode_as<BFloat16>(span);
  CHECK(span.type == DType::F16, "weights are of no type", name_of(span.type));
  decode_as<Float16>(span);
}

void encode_weights(const float* numbers, std::int64_t bits, std::int64_t blocks, std::byte* codes) {
  const StateBlock block = weight_block(bits);
  for (std::int64_t b = 0; b < blocks; ++b) {
    if (bits == 8)
      encode_block<8>(numbers + b * block.elements, codes + b * block.bytes);
    else
      encode_block<4>(numbers + b * block.elements, codes + b * block.bytes);
  }
}

}  // namespace tandem
