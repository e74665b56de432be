// A number that looks drawn, and is a pure function of another: chance without a state. Must not know what is drawn.
#pragma once

#include <cstdint>

namespace tandem {

// SplitMix64's output function (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace tandem
