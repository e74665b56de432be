#include "core/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tandem {
namespace {

// Three significant digits, without an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

template <std::size_t N>
std::string scaled(double value, double base, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  for (; unit + 1 < N && std::abs(value) >= base * 0.9995; ++unit) value /= base;
  return three_digits(value) + units[unit];
}

}  // namespace

std::string format_time(double seconds) {
  const double size = std::abs(seconds);
  if (seconds == 0) return "0 s";
  if (size < 0.9995e-6) return three_digits(seconds * 1e9) + " ns";
  if (size < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (size < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string format_range(double low_s, double high_s) {
  std::string low = format_time(low_s);
  const std::string high = format_time(high_s);
  const std::size_t unit = low.find(' ');
  if (high.substr(high.find(' ')) == low.substr(unit)) low.erase(unit);
  return low + " to " + high;
}

std::string format_bytes(std::int64_t bytes) {
  if (std::abs(bytes) < 1024) return fmt::format("{} B", bytes);
  return scaled(static_cast<double>(bytes), 1024, std::array{" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string format_count(double value) {
  return std::abs(value) < 1000 ? three_digits(value)
                                : scaled(value, 1000, std::array{"", " k", " M", " G", " T", " P"});
}

std::string format_percent(double share) { return fmt::format("{:.1f}%", share * 100); }

}  // namespace tandem
