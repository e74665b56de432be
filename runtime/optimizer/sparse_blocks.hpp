// Numbers that are stored sparse (core/formats/sparse_blocks.hpp): of a block those of largest magnitude are kept, of
// equal ones the first, and what is no number counts as the largest; the rest comes back as zeros. The same bits on
// every processor. Must not know ops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.hpp"
#include "core/formats/sparse_blocks.hpp"

namespace tandem {

// Whole blocks, of which the last may end early: `elements` are there in all.
struct SparseSpan {
  void* numbers = nullptr;
  SparseMask* masks = nullptr;
  void* values = nullptr;  // so many of a block
  DType type = DType::F32;
  std::int64_t elements = 0, kept = 0;
};
// Of `sparse`, sparse_bytes() of them: a value's first byte.
SparseSpan sparse_span(void* numbers, std::byte* sparse, DType type, std::int64_t elements, std::int64_t kept);
SparseSpan part_of(const SparseSpan& span, std::int64_t first_block, std::int64_t blocks);

// On the CPU. Numbers of the types F32, BF16 and F16.
void encode_sparse(const SparseSpan& span);
void decode_sparse(const SparseSpan& span);

}  // namespace tandem
