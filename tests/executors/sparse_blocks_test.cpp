// Numbers that are stored sparse: of each block those of largest magnitude come back as they were, and zeros for the
// rest, as a plain sort says; in every type, wherever blocks are cut, of a last block that is not whole.
#include "runtime/optimizer/sparse_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kElements = 7 * kSparseBlock + 11;

template <class Word>
std::vector<std::byte> encoded(std::vector<Word> numbers, DType type, std::int64_t kept) {
  const auto elements = static_cast<std::int64_t>(numbers.size());
  std::vector<std::byte> sparse(static_cast<std::size_t>(sparse_bytes(elements, kept, sizeof(Word))), std::byte{0xA5});
  encode_sparse(sparse_span(numbers.data(), sparse.data(), type, elements, kept));
  return sparse;
}

template <class Word>
std::vector<Word> there_and_back(const std::vector<Word>& numbers, DType type, std::int64_t kept) {
  std::vector<std::byte> sparse = encoded(numbers, type, kept);
  std::vector<Word> back(numbers.size(), Word(-1));
  decode_sparse(sparse_span(back.data(), sparse.data(), type, static_cast<std::int64_t>(numbers.size()), kept));
  return back;
}

std::vector<std::uint32_t> words_of(const std::vector<float>& numbers) {
  std::vector<std::uint32_t> words(numbers.size());
  std::memcpy(words.data(), numbers.data(), numbers.size() * sizeof(float));
  return words;
}

// By a stable sort of magnitudes.
std::vector<std::uint32_t> largest_of_each_block(const std::vector<float>& numbers, std::int64_t kept) {
  std::vector<float> result(numbers.size(), 0.0F);
  const auto count = static_cast<std::int64_t>(numbers.size());
  for (std::int64_t first = 0; first < count; first += kSparseBlock) {
    std::vector<std::size_t> order(static_cast<std::size_t>(std::min(kSparseBlock, count - first)));
    std::iota(order.begin(), order.end(), static_cast<std::size_t>(first));
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::fabs(numbers[a]) > std::fabs(numbers[b]); });
    for (std::size_t i = 0; i < order.size() && static_cast<std::int64_t>(i) < kept; ++i)
      result[order[i]] = numbers[order[i]];
  }
  return words_of(result);
}

// Some numbers are equal, some zero.
std::vector<float> numbers_with_ties() {
  std::vector<float> numbers = plain_values(kElements, 1, 3);
  for (std::size_t i = 0; i < numbers.size(); i += 5) numbers[i] = i % 2 == 0 ? 0.25F : -0.25F;
  for (std::size_t i = 1; i < numbers.size(); i += 7) numbers[i] = 0;
  return numbers;
}

TEST(SparseBlocks, KeepWhatAPlainSortDoes) {
  const std::vector<float> numbers = numbers_with_ties();
  for (const std::int64_t kept : {1, 16, 33, 63})
    EXPECT_EQ(there_and_back(words_of(numbers), DType::F32, kept), largest_of_each_block(numbers, kept)) << kept;
}

TEST(SparseBlocks, KeepEveryBitWhereAllAreKept) {
  std::vector<std::uint32_t> words = words_of(numbers_with_ties());
  words[3] = 0x80000000U, words[4] = 0x7FC01234U, words[5] = 0xFF800000U;  // -0, a NaN, an infinity
  EXPECT_EQ(there_and_back(words, DType::F32, kSparseBlock), words);
  std::vector<std::uint16_t> halves(words.size());
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(words[i] >> 16U);
  for (const DType type : {DType::BF16, DType::F16}) EXPECT_EQ(there_and_back(halves, type, kSparseBlock), halves);
}

// The upper halves of fp32 numbers are bf16 numbers: in the same order, if none are equal.
TEST(SparseBlocks, KeepTheSameOfSixteenBits) {
  std::vector<float> numbers(static_cast<std::size_t>(kElements));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>((i * 37) % 64 + 1) * (i % 3 == 0 ? -1.0F : 1.0F);
  std::vector<std::uint16_t> halves;
  for (const std::uint32_t word : words_of(numbers)) halves.push_back(static_cast<std::uint16_t>(word >> 16U));
  const std::vector<std::uint16_t> back = there_and_back(halves, DType::BF16, 16);
  const std::vector<std::uint32_t> expected = largest_of_each_block(numbers, 16);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], expected[i] >> 16U) << i;
}

TEST(SparseBlocks, MayBeCutAtBlocks) {
  const std::vector<std::byte> whole = encoded(words_of(numbers_with_ties()), DType::F32, 16);
  std::vector<std::uint32_t> words = words_of(numbers_with_ties());
  std::vector<std::byte> parts(whole.size(), std::byte{0x5A});
  const SparseSpan span = sparse_span(words.data(), parts.data(), DType::F32, kElements, 16);
  encode_sparse(part_of(span, 0, 3));
  encode_sparse(part_of(span, 3, 5));
  EXPECT_EQ(parts, whole);  // no byte is left as it was
}

// What is no number is the largest: a run that diverges is seen to.
TEST(SparseBlocks, KeepWhatIsNotFinite) {
  std::vector<float> numbers = plain_values(kElements, 1, 4);
  numbers[70] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::uint32_t> back = there_and_back(words_of(numbers), DType::F32, 1);
  float number = 0;
  std::memcpy(&number, &back[70], sizeof number);
  EXPECT_TRUE(std::isnan(number));
}

TEST(SparseBlocks, TakeAShareRoundedUp) {
  EXPECT_EQ(kept_of_block(1), 64);
  EXPECT_EQ(kept_of_block(0.25), 16);
  EXPECT_EQ(kept_of_block(0.26), 17);
  EXPECT_EQ(kept_of_block(1e-9), 1);
  EXPECT_EQ(sparse_bytes(65536, 16, 4), 1024 * (8 + 16 * 4));
  EXPECT_EQ(sparse_bytes(65, 16, 2), 2 * (8 + 16 * 2));
}

}  // namespace
}  // namespace tandem
