// Numbers drawn for one sample: of its seed and of what they are drawn for alone, so that neither threads nor the order
// of samples change them. Must not know what samples are.
#pragma once

#include <cstdint>

#include "core/base/mix.hpp"

namespace tandem {

enum class Drawn : std::uint8_t { Box, Flip, Neighbours, MadeUp };

class Chance {
 public:
  Chance(std::uint64_t seed, Drawn what) : state_(mix(seed ^ mix(static_cast<std::uint64_t>(what)))) {}

  std::uint64_t next() { return mix(state_ ^ ++count_); }
  // 0 to 1, without 1: 53 bits.
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double least, double most) { return least + (most - least) * share(); }
  // 0 to count - 1, of a count of at most 2^32: each as likely to 2^-32 (Lemire 2019, arXiv 1805.10941).
  std::uint64_t below(std::uint64_t count) { return (next() >> 32) * count >> 32; }

 private:
  std::uint64_t state_, count_ = 0;
};

}  // namespace tandem
