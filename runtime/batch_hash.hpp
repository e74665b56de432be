// The one source of chance in batches: a number that is a pure function of what it is drawn for.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "runtime/data.hpp"

namespace tandem {

// SplitMix64's output function (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// A row of a training step's global batch. Rank r's rows follow those of rank r - 1, so that two ranks see together
// what one rank with the double batch sees.
struct RowKey {
  std::uint64_t seed = 0;
  std::int32_t step = 0, micro_batch = 0;
  std::int64_t row = 0;

  std::uint64_t draw(std::int64_t index) const {
    std::uint64_t x = seed;
    for (std::int64_t part : {std::int64_t{step}, std::int64_t{micro_batch}, row, index})
      x = mix(x ^ static_cast<std::uint64_t>(part));
    return x;
  }
};

constexpr RowKey row_key(std::uint64_t seed, BatchKey key, std::int64_t batch, std::int64_t row) {
  constexpr std::int32_t kHeldOut = -1;  // no training step
  return {seed, key.held_out ? kHeldOut : key.step, key.micro_batch, key.rank * batch + row};
}

}  // namespace tandem
