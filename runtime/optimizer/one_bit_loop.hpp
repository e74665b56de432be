// Adam by signs of the momentum: some words become fp32 numbers in a cache, which Adam takes for a gradient and, with
// the weights of one_bit_step(), for the momentum (update_loop.hpp). Included by the files of the instruction sets
// alone.
#pragma once

#include <algorithm>

#include "core/formats/one_bit.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/one_bit_formula.hpp"
#include "runtime/optimizer/update_loop.hpp"

namespace tandem {

// Zero where v is: no gradient was ever there.
template <class Ops>
void decode_signs(std::uint32_t scale, const std::uint32_t* words, const float* v, std::int64_t elements,
                  float* numbers) {
  for (std::int64_t first = 0; first < elements; first += kSignsPerWord) {
    const std::uint32_t word = words[first / kSignsPerWord];
    const auto count = static_cast<std::uint32_t>(std::min(kSignsPerWord, elements - first));
    for (std::uint32_t i = 0; i < count; ++i)
      numbers[first + i] = v[first + i] == 0 ? 0 : sent_number(scale, word >> i & 1U);
  }
}

template <class Ops>
bool adam_by_signs(const UpdateStep& step, const SignSpan& span) {
  constexpr std::int64_t kTile = 1024;  // elements: 12 KiB beside the tile's other operands
  alignas(64) float sent[kTile], m[kTile] = {}, v[kTile];
  const std::uint32_t* words = span.signs;
  bool finite = true;
  for (std::int64_t begin = 0; begin < span.masters.elements; begin += span.block) {
    const std::int64_t end = std::min(begin + span.block, span.masters.elements);
    const std::uint32_t scale = *words++;
    for (std::int64_t first = begin; first < end; first += kTile) {
      UpdateSpan tile = part_of(span.masters, first, std::min(kTile, end - first));
      decode_signs<Ops>(scale, words, span.v + first, tile.elements, sent);
      std::copy_n(span.v + first, tile.elements, v);
      tile.gradient = sent;
      tile.gradient_type = DType::F32;
      tile.m = m;
      tile.v = v;
      finite &= update_by<Ops, AdamRule, float>(step, tile);
      words += (tile.elements + kSignsPerWord - 1) / kSignsPerWord;
    }
  }
  return finite;
}

}  // namespace tandem
