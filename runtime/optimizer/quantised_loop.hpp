// Adam over blocks of quantised moments: a few blocks at a time become fp32 numbers in a cache, are updated as any
// others are (update_loop.hpp), and become codes again. Included by the files of the instruction sets alone.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/formats/state_blocks.hpp"
#include "runtime/optimizer/state_map.hpp"
#include "runtime/optimizer/update_loop.hpp"

namespace tandem {

// One moment's blocks to numbers and back. Plain loops over arrays, which compilers make vectors of. Two codes of 4
// bits share a byte: those of elements that lie half a block apart.
template <class Ops, int kBits, class Map>
struct BlockCodec {
  static constexpr StateBlock kBlock = state_block(kBits);
  static constexpr std::int64_t kCodeBytes = kBlock.bytes - kScaleBytes;

  static void decode(const std::uint8_t* block, float* numbers) {
    float scale = 0;
    std::memcpy(&scale, block, sizeof(scale));
    const std::uint8_t* codes = block + kScaleBytes;
    for (std::int64_t i = 0; i < kCodeBytes; ++i) {
      if constexpr (kBits == 8) {
        numbers[i] = number_of<Map>(codes[i], scale);
      } else {
        numbers[i] = number_of<Map>(codes[i] & 15, scale);
        numbers[i + kCodeBytes] = number_of<Map>(codes[i] >> 4, scale);
      }
    }
  }

  static void encode(const float* numbers, std::uint8_t* block) {
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < kBlock.elements; ++i) largest = std::max(largest, magnitude_bits(numbers[i]));
    const BlockScale scale = block_scale(largest);
    std::memcpy(block, &scale.scale, sizeof(scale.scale));
    std::int32_t codes[kBlock.elements];
    for (std::int64_t i = 0; i < kBlock.elements; ++i) codes[i] = code_of<Map>(numbers[i], scale.inverse);
    std::uint8_t* packed = block + kScaleBytes;
    for (std::int64_t i = 0; i < kCodeBytes; ++i)
      packed[i] = static_cast<std::uint8_t>(kBits == 8 ? codes[i] : codes[i] | codes[i + kCodeBytes] << 4);
  }
};

template <class Ops, int kBits>
bool adam_in_blocks(const UpdateStep& step, const UpdateSpan& span) {
  using M = BlockCodec<Ops, kBits, typename StateMaps<kBits>::M>;
  using V = BlockCodec<Ops, kBits, typename StateMaps<kBits>::V>;
  constexpr StateBlock kBlock = M::kBlock;
  constexpr std::int64_t kTile = 1024;  // elements: 8 KiB of moments beside the tile's other operands
  alignas(64) float m[kTile], v[kTile];
  bool finite = true;
  for (std::int64_t first = 0; first < span.elements; first += kTile) {
    const UpdateSpan blocks = part_of(span, first, std::min(kTile, span.elements - first));
    auto *m_blocks = static_cast<std::uint8_t*>(blocks.m), *v_blocks = static_cast<std::uint8_t*>(blocks.v);
    const std::int64_t count = blocks.elements / kBlock.elements;
    for (std::int64_t b = 0; b < count; ++b) {
      M::decode(m_blocks + b * kBlock.bytes, m + b * kBlock.elements);
      V::decode(v_blocks + b * kBlock.bytes, v + b * kBlock.elements);
    }
    UpdateSpan tile = blocks;
    tile.m = m;
    tile.v = v;
    tile.state_bits = 32;
    finite &= update_by<Ops, AdamRule, float>(step, tile);
    for (std::int64_t b = 0; b < count; ++b) {
      M::encode(m + b * kBlock.elements, m_blocks + b * kBlock.bytes);
      V::encode(v + b * kBlock.elements, v_blocks + b * kBlock.bytes);
    }
  }
  return finite;
}

template <class Ops>
bool update_of_any_states(const UpdateStep& step, const UpdateSpan& span) {
  if (span.state_bits == 8) return adam_in_blocks<Ops, 8>(step, span);
  if (span.state_bits == 4) return adam_in_blocks<Ops, 4>(step, span);
  return update_kernel<Ops>(step, span);
}

}  // namespace tandem
