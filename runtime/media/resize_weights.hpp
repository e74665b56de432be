// Which pixels a scaled one is a mean of, and how much each counts: shared by the CPU's resize and the device's, to the
// bit. After Pillow's src/libImaging/Resample.c, in whole numbers of 2^-22.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.hpp"

namespace tandem {

inline constexpr int kFractionBits = 32 - 8 - 2;
inline constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);

// One direction: `length` pixels of `source`, from `begin` on, become `side`.
struct Scaling {
  std::int32_t source = 0;
  double begin = 0, scale = 1, support = 1;
};
TANDEM_ALWAYS_INLINE Scaling scaling(std::int32_t source, double begin, double length, std::int32_t side) {
  const double scale = length / side;
  return {source, begin, scale, scale > 1 ? scale : 1};
}

// Of one place of the result: the pixels that count.
struct Taps {
  std::int32_t first = 0, count = 0;
  double centre = 0;
};
TANDEM_ALWAYS_INLINE Taps taps(const Scaling& s, std::int32_t place) {
  const double centre = s.begin + (place + 0.5) * s.scale;
  const auto low = static_cast<std::int32_t>(centre - s.support + 0.5);
  const auto high = static_cast<std::int32_t>(centre + s.support + 0.5);
  const std::int32_t first = low > 0 ? low : 0;
  return {first, (high < s.source ? high : s.source) - first, centre};
}

// What its pixel `tap` counts, before all are scaled to sum to one.
TANDEM_ALWAYS_INLINE double bare_weight(const Scaling& s, const Taps& t, std::int32_t tap) {
  const double away = std::fabs((tap + t.first - t.centre + 0.5) / s.support);
  return away < 1 ? 1 - away : 0;
}
TANDEM_ALWAYS_INLINE double weight_factor(const Scaling& s, const Taps& t) {
  double sum = 0;
  for (std::int32_t tap = 0; tap < t.count; ++tap) sum += bare_weight(s, t, tap);
  return sum != 0 ? 1 / sum : 1;
}
TANDEM_ALWAYS_INLINE std::int32_t weight(double bare, double factor) {
  return static_cast<std::int32_t>(0.5 + bare * factor * (1 << kFractionBits));
}

TANDEM_ALWAYS_INLINE std::uint8_t rounded_pixel(std::int32_t sum) {
  const std::int32_t value = sum >> kFractionBits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace tandem
