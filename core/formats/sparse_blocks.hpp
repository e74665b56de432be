// How activations lie that are stored sparse: for each 64 numbers a mask of those that are kept, then the numbers that
// are, in their order, so many for each block. Sizes that transforms and bodies share. Must not know which are kept
// (runtime/optimizer/sparse_blocks.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tandem {

// A mask is one 64-bit word, bit i for the i-th number.
inline constexpr std::int64_t kSparseBlock = 64;
using SparseMask = std::uint64_t;

// Of a block, so many numbers: a share of them in (0, 1], rounded up.
inline std::int64_t kept_of_block(double share) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(share * kSparseBlock)), 1, kSparseBlock);
}

// The last block may be less than whole: it takes as much place.
constexpr std::int64_t sparse_blocks(std::int64_t elements) { return (elements + kSparseBlock - 1) / kSparseBlock; }
constexpr std::int64_t sparse_values_offset(std::int64_t elements) {
  return sparse_blocks(elements) * static_cast<std::int64_t>(sizeof(SparseMask));
}
// `number_bytes`: of a number. Masks of all blocks come first.
constexpr std::int64_t sparse_bytes(std::int64_t elements, std::int64_t kept, std::int64_t number_bytes) {
  return sparse_values_offset(elements) + sparse_blocks(elements) * kept * number_bytes;
}

}  // namespace tandem
