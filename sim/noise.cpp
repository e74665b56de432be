#include "sim/noise.hpp"

#include <cmath>
#include <numbers>

namespace tandem {
namespace {

constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;

// Uniform in (0, 1]: the upper 53 bits, so that the logarithm is finite.
double unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 1) * 0x1p-53; }

}  // namespace

std::uint64_t mix_bits(std::uint64_t bits) {
  bits += kGoldenGamma;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

double noise_factor(double relative_deviation, std::uint64_t seed, Rank rank, CommandId command) {
  if (relative_deviation == 0) return 1;
  const std::uint64_t key =
      mix_bits(mix_bits(seed ^ mix_bits(static_cast<std::uint64_t>(rank))) + static_cast<std::uint64_t>(command));
  const double radius = std::sqrt(-2 * std::log(unit(key)));
  const double normal = radius * std::cos(2 * std::numbers::pi * unit(mix_bits(key)));
  const double variance = std::log1p(relative_deviation * relative_deviation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace tandem
