// How weights lie that are kept as codes: block by block, an fp32 scale and then the codes of a block's numbers. Sizes
// that the plan, bodies and readers share. Must not know what the codes mean (runtime/optimizer/weight_codes.hpp).
#pragma once

#include "core/formats/state_blocks.hpp"

namespace tandem {

// Fields of such a bucket begin at whole blocks. 4 bits: 64 numbers, as QLoRA has them (Dettmers et al., NeurIPS 2023,
// arXiv 2305.14314, section 3); 8 bits: 256, which lose less than half a percent to scales.
constexpr StateBlock weight_block(std::int64_t bits) {
  if (bits == 8) return {256, kScaleBytes + 256};
  return {64, kScaleBytes + 32};
}
static_assert(weight_block(8).bytes - kScaleBytes == weight_block(8).elements * 8 / 8);
static_assert(weight_block(4).bytes - kScaleBytes == weight_block(4).elements * 4 / 8);

// A row of so many numbers, whose last block is filled up.
constexpr std::int64_t padded_to_blocks(std::int64_t bits, std::int64_t elements) {
  const std::int64_t block = weight_block(bits).elements;
  return (elements + block - 1) / block * block;
}

// Of whole blocks.
constexpr std::int64_t coded_bytes(std::int64_t bits, std::int64_t elements) {
  return elements / weight_block(bits).elements * weight_block(bits).bytes;
}

}  // namespace tandem
