// Seeded noise on durations: a factor that depends on the seed, the rank and the command alone, so that the same seed
// gives the same run whatever the order of events.
#pragma once

#include <cstdint>

#include "core/base/ids.hpp"

namespace tandem {

// A well-mixed 64-bit hash (SplitMix64's finaliser; Steele, Lea, Flood: Fast splittable pseudorandom number
// generators).
std::uint64_t mix_bits(std::uint64_t bits);

// Lognormal with mean 1 and this relative standard deviation. 0: exactly 1.
double noise_factor(double relative_deviation, std::uint64_t seed, Rank rank, CommandId command);

}  // namespace tandem
