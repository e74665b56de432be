// Adam with quantised moments: what every instruction set makes of blocks is what storing the formula's moments gives,
// however a span is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/formats/state_blocks.hpp"
#include "runtime/optimizer/state_map.hpp"
#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16};

// An AdamCase with its moments in blocks of random codes.
struct BlockCase {
  BlockCase(std::int64_t state_bits, std::int64_t blocks, bool corners, DType gradient, DType parameter)
      : bits(state_bits),
        block(state_block(state_bits)),
        numbers(blocks * block.elements, corners, gradient, parameter, 0),
        m(blocks * block.bytes),
        v(blocks * block.bytes) {
    std::mt19937 random(7);
    for (auto* bytes : {&m, &v}) {
      for (std::uint8_t& byte : *bytes) byte = static_cast<std::uint8_t>(random());
      for (std::int64_t i = 0; i < blocks; ++i) {
        const float scale = i == 0 ? 0 : static_cast<float>(i) * 1e-3F;
        std::memcpy(bytes->data() + i * block.bytes, &scale, sizeof(scale));
      }
    }
  }
  UpdateSpan span() {
    UpdateSpan span = numbers.span();
    span.state_bits = bits;
    span.m = m.data();
    span.v = v.data();
    return span;
  }
  bool same_as(BlockCase& other) { return m == other.m && v == other.v && numbers.same_as(other.numbers); }

  std::int64_t bits;
  StateBlock block;
  AdamCase numbers;
  std::vector<std::uint8_t> m, v;
};

// Where element i of a block has its code: a byte, or the lower or upper half of one for the first or second half.
std::int32_t code_at(const BlockCase& c, const std::vector<std::uint8_t>& bytes, std::int64_t element) {
  const std::int64_t i = element % c.block.elements, half = c.block.elements / 2;
  const std::uint8_t* codes = bytes.data() + element / c.block.elements * c.block.bytes + kScaleBytes;
  if (c.bits == 8) return codes[i];
  return i < half ? codes[i] & 15 : codes[i - half] >> 4;
}

float scale_at(const BlockCase& c, const std::vector<std::uint8_t>& bytes, std::int64_t element) {
  float scale = 0;
  std::memcpy(&scale, bytes.data() + element / c.block.elements * c.block.bytes, sizeof(scale));
  return scale;
}

template <class Map>
void read_numbers(const BlockCase& c, const std::vector<std::uint8_t>& bytes, float* numbers) {
  for (std::int64_t i = 0; i < c.numbers.elements; ++i)
    numbers[i] = number_of<Map>(code_at(c, bytes, i), scale_at(c, bytes, i));
}

// The blocks hold these numbers, stored.
template <class Map>
void expect_stored(const BlockCase& c, const std::vector<std::uint8_t>& bytes, const float* numbers) {
  for (std::int64_t first = 0; first < c.numbers.elements; first += c.block.elements) {
    std::uint32_t largest = 0;
    for (std::int64_t i = first; i < first + c.block.elements; ++i)
      largest = std::max(largest, magnitude_bits(numbers[i]));
    const BlockScale scale = block_scale(largest);
    EXPECT_EQ(float_as_bits(scale_at(c, bytes, first)), float_as_bits(scale.scale));
    for (std::int64_t i = first; i < first + c.block.elements; ++i)
      if (!std::isnan(numbers[i])) {  // whose sign differs by processor
        ASSERT_EQ(code_at(c, bytes, i), code_of<Map>(numbers[i], scale.inverse)) << i << ": " << numbers[i];
      }
  }
}

UpdateStep step_of(bool decoupled) { return update_step({1e-3, 0.9, 0.999, 1e-8, 0.1, decoupled}, 3, 0.7F); }

// Moments are what fp32 ones become, and parameters exactly theirs.
template <int kBits>
void expect_stored_moments_of_formula() {
  for (const DType gradient : kTypes)
    for (const DType parameter : kTypes)
      for (const bool corners : {false, true}) {
        BlockCase blocks(kBits, 9, corners, gradient, parameter);
        AdamCase plain = blocks.numbers;
        read_numbers<typename StateMaps<kBits>::M>(blocks, blocks.m, plain.m.floats());
        read_numbers<typename StateMaps<kBits>::V>(blocks, blocks.v, plain.v.floats());
        update_elements(step_of(true), plain.span());
        for (const Isa isa : isas()) {
          BlockCase got = blocks;
          update_elements(step_of(true), got.span(), isa);
          expect_stored<typename StateMaps<kBits>::M>(got, got.m, plain.m.floats());
          expect_stored<typename StateMaps<kBits>::V>(got, got.v, plain.v.floats());
          EXPECT_TRUE(got.numbers.master.same_as(plain.master));
          EXPECT_TRUE(got.numbers.parameter.same_as(plain.parameter));
          EXPECT_TRUE(got.numbers.master_low.same_as(plain.master_low));
        }
      }
}

TEST(QuantisedAdamTest, EveryInstructionSetStoresTheFormulasMoments) {
  expect_stored_moments_of_formula<8>();
  expect_stored_moments_of_formula<4>();
}

TEST(QuantisedAdamTest, ASpanCutAtBlocksGivesTheSameBits) {
  for (const std::int64_t bits : {8, 4})
    for (const DType parameter : kTypes) {
      constexpr std::int64_t kBlocks = 11;
      BlockCase whole(bits, kBlocks, false, DType::BF16, parameter);
      const BlockCase start = whole;
      update_elements(step_of(false), whole.span());
      for (std::int64_t cut = 0; cut <= kBlocks; ++cut) {
        BlockCase parts = start;
        const std::int64_t first = cut * whole.block.elements;
        update_elements(step_of(false), part_of(parts.span(), 0, first));
        update_elements(step_of(false), part_of(parts.span(), first, whole.numbers.elements - first));
        EXPECT_TRUE(parts.same_as(whole)) << bits << " bits, cut at block " << cut;
      }
      for (const int threads : {2, 3, 64}) {
        BlockCase chunks = start;
        for (int thread = 0; thread < threads; ++thread)
          update_elements(step_of(false), chunk_of(chunks.span(), thread, threads));
        EXPECT_TRUE(chunks.same_as(whole)) << bits << " bits, " << threads << " threads";
      }
    }
}

TEST(QuantisedAdamDeathTest, ACutWithinABlockIsABug) {
  BlockCase blocks(8, 2, false, DType::F32, DType::F32);
  EXPECT_DEATH(part_of(blocks.span(), 128, 256), "CHECK");
}

}  // namespace
}  // namespace tandem
