#include "runtime/initial_values.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem {
namespace {

constexpr double kDeviation = 0.02;  // GPT-2

// SplitMix64's finaliser: a bijection whose outputs for consecutive inputs pass statistical tests.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash(std::string_view name) {
  std::uint64_t h = 0;
  for (const char c : name) h = mix(h ^ static_cast<unsigned char>(c));
  return h;
}

// Uniform in (0, 1].
double uniform(std::uint64_t bits) {
  constexpr double kUnit = 0x1p-53;
  return static_cast<double>((bits >> 11) + 1) * kUnit;
}

// Box-Muller, one number from two draws: element i does not depend on its neighbours.
float normal(std::uint64_t key, std::uint64_t index, double deviation) {
  const double radius = std::sqrt(-2 * std::log(uniform(mix(key ^ mix(2 * index)))));
  const double angle = 2 * std::numbers::pi * uniform(mix(key ^ mix(2 * index + 1)));
  return static_cast<float>(deviation * radius * std::cos(angle));
}

}  // namespace

void fill_initial(float* tensor, std::int64_t first, std::int64_t count, std::span<const std::int64_t> shape,
                  std::string_view name, std::uint64_t seed) {
  if (shape.size() == 1) {
    std::fill_n(tensor + first, count, name.ends_with("weight") ? 1.0f : 0.0f);
    return;
  }
  // He et al. 2015, equation 10: keeps the variance through relu.
  const double deviation = name.ends_with("relu.weight") ? std::sqrt(2.0 / static_cast<double>(shape[1])) : kDeviation;
  const std::uint64_t key = mix(seed) ^ hash(name);
  for (std::int64_t i = first; i < first + count; ++i)
    tensor[i] = normal(key, static_cast<std::uint64_t>(i), deviation);
}

void fill_initial(float* tensor, std::span<const std::int64_t> shape, std::string_view name, std::uint64_t seed) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  fill_initial(tensor, 0, elements, shape, name, seed);
}

}  // namespace tandem
