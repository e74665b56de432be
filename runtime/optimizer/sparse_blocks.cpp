#include "runtime/optimizer/sparse_blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// All but the sign: of numbers with equal signs, integers are in the order of what they mean.
template <class Word>
std::uint64_t magnitude(Word word) {
  return word & static_cast<Word>(~(Word{1} << (8 * sizeof(Word) - 1)));
}

// Of `count` numbers, at most `kept` that are largest. Keys differ: of equal magnitudes the first has the larger key.
template <class Word>
SparseMask largest_of(const Word* numbers, std::int64_t count, std::int64_t kept) {
  std::array<std::uint64_t, kSparseBlock> keys{};
  const auto key = [&](std::int64_t i) {
    return magnitude(numbers[i]) * kSparseBlock + static_cast<std::uint64_t>(kSparseBlock - 1 - i);
  };
  for (std::int64_t i = 0; i < count; ++i) keys[static_cast<std::size_t>(i)] = key(i);
  const auto last = keys.begin() + std::min(kept, count) - 1;
  std::nth_element(keys.begin(), last, keys.begin() + count, std::greater<>());
  SparseMask mask = 0;
  for (std::int64_t i = 0; i < count; ++i) mask |= static_cast<SparseMask>(key(i) >= *last) << i;
  return mask;
}

template <class Word>
void encode_as(const SparseSpan& span) {
  const auto* numbers = static_cast<const Word*>(span.numbers);
  auto* values = static_cast<Word*>(span.values);
  for (std::int64_t b = 0; b < sparse_blocks(span.elements); ++b, numbers += kSparseBlock, values += span.kept) {
    const SparseMask mask = largest_of(numbers, std::min(kSparseBlock, span.elements - b * kSparseBlock), span.kept);
    span.masks[b] = mask;
    Word* to = values;
    for (SparseMask left = mask; left != 0; left &= left - 1) *to++ = numbers[std::countr_zero(left)];
    std::fill(to, values + span.kept, Word{});  // of the last block: bytes that nobody left as they were
  }
}

template <class Word>
void decode_as(const SparseSpan& span) {
  auto* numbers = static_cast<Word*>(span.numbers);
  const auto* values = static_cast<const Word*>(span.values);
  std::fill(numbers, numbers + span.elements, Word{});
  for (std::int64_t b = 0; b < sparse_blocks(span.elements); ++b, numbers += kSparseBlock, values += span.kept) {
    const Word* from = values;
    for (SparseMask left = span.masks[b]; left != 0; left &= left - 1) numbers[std::countr_zero(left)] = *from++;
  }
}

}  // namespace

SparseSpan sparse_span(void* numbers, std::byte* sparse, DType type, std::int64_t elements, std::int64_t kept) {
  return {numbers, reinterpret_cast<SparseMask*>(sparse), sparse + sparse_values_offset(elements), type, elements,
          kept};
}

SparseSpan part_of(const SparseSpan& span, std::int64_t first_block, std::int64_t blocks) {
  const std::int64_t first = first_block * kSparseBlock, all = sparse_blocks(span.elements);
  CHECK(first_block >= 0 && blocks >= 0 && first_block + blocks <= all, first_block, blocks, all);
  return {static_cast<std::byte*>(span.numbers) + first * size_of(span.type),
          span.masks + first_block,
          static_cast<std::byte*>(span.values) + first_block * span.kept * size_of(span.type),
          span.type,
          std::min(blocks * kSparseBlock, span.elements - first),
          span.kept};
}

void encode_sparse(const SparseSpan& span) {
  CHECK(span.kept >= 1 && span.kept <= kSparseBlock, span.kept);
  if (size_of(span.type) == 4) return encode_as<std::uint32_t>(span);
  CHECK(size_of(span.type) == 2, "numbers are of no type", name_of(span.type));
  encode_as<std::uint16_t>(span);
}

void decode_sparse(const SparseSpan& span) {
  if (size_of(span.type) == 4) return decode_as<std::uint32_t>(span);
  CHECK(size_of(span.type) == 2, "numbers are of no type", name_of(span.type));
  decode_as<std::uint16_t>(span);
}

}  // namespace tandem
