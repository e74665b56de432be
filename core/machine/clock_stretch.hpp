// What a power limit makes of a device's clock. Must not know kernels or profiles.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace tandem {

// How many times as long as at the full clock kernels take that need it, where they would draw `clocked` of the limit
// at the full clock and all else draws `other`, both averages over time. Power goes with the square of the clock, near
// the full one: on an H200, products draw 1.37 times the limit and take 1.17 times as long without a pause, 1.11 where
// memory kernels take a quarter of the time.
inline double clock_stretch(double clocked, double other) {
  CHECK(clocked >= 0 && other >= 0, clocked, other);
  constexpr double kLeastShare = 0.1;  // of the limit, for kernels that need the clock, however much the others draw
  return std::max(1.0, std::sqrt(clocked / std::max(kLeastShare, 1 - other)));
}

}  // namespace tandem
