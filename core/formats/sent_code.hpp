// What numbers are compressed to before ranks send them to each other: 16 bits each, or a sign each and a scale for
// each block (core/formats/one_bit.hpp). Must not know which numbers they are.
//
// N numbers that all of P ranks have are compressed by each of them, in P equal parts of whole units, so that each rank
// gets one part of each. The last parts may have fewer numbers, or none: what is behind them is zero bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/formats/one_bit.hpp"

namespace tandem {

struct SentCode {
  enum class Kind : std::uint8_t { None, BFloat16, Float16, Signs };
  Kind kind = Kind::None;
  std::int64_t block = 0;  // Signs: numbers that share a scale, a multiple of 32

  // Of numbers that are a multiple of it, the code is that of the first ones and then that of the others.
  std::int64_t unit() const { return kind == Kind::Signs ? block : 2; }
  std::int64_t bytes(std::int64_t elements) const {
    constexpr std::int64_t kWord = 4, kHalfWord = 2;
    return kind == Kind::Signs ? sign_words(elements, block) * kWord : elements * kHalfWord;
  }
  // Numbers of a rank's part; and those of them that are there, in the part of a rank.
  std::int64_t part(std::int64_t elements, std::int64_t ranks) const {
    return rounded_up_quotient(elements, ranks * unit()) * unit();
  }
  std::int64_t there(std::int64_t elements, std::int64_t ranks, std::int64_t rank) const {
    const std::int64_t each = part(elements, ranks);
    return std::clamp<std::int64_t>(elements - rank * each, 0, each);
  }
};

}  // namespace tandem
